// The console as a person meets it: places by role and name.
import { expect, type Locator, type Page } from '@playwright/test';

export class Console {
  constructor(readonly page: Page, readonly url: string) {}

  async open(path = '/'): Promise<void> {
    await this.page.goto(`${this.url}/ui${path}`);
  }

  // The list of runs.
  get grid(): Locator {
    return this.page.getByRole('grid', { name: 'Runs' });
  }
  get rows(): Locator {
    return this.grid.locator('[role=row][data-run]');
  }
  row(run: string): Locator {
    return this.grid.locator(`[role=row][data-run="${run}"]`);
  }
  facet(word: string): Locator {
    return this.page.getByRole('group', { name: /State|Workflow/ }).getByRole('button', { name: new RegExp(`^${word}\\s*[\\d,]+$`) });
  }
  get fresh(): Locator {
    return this.page.getByTestId('fresh');
  }
  get state(): Locator {
    return this.page.getByTestId('server-state');
  }

  // A run.
  get why(): Locator {
    return this.page.getByTestId('why');
  }
  /** A step or loop of the graph, by the names of what it lies in and its own. */
  node(path: string): Locator {
    return this.page.locator(`[data-testid=node][data-path="${path}"]`);
  }
  /** `↻ 3/5` of a closed loop. */
  count(path: string): Locator {
    return this.node(path).getByTestId('count');
  }
  get crumbs(): Locator {
    return this.page.getByTestId('crumbs');
  }
  get strip(): Locator {
    return this.page.getByTestId('strip');
  }
  get counts(): Locator {
    return this.page.getByTestId('counts');
  }
  /** The number of the iteration that is shown, from 1. */
  get field(): Locator {
    return this.page.getByTestId('pager').getByRole('spinbutton', { name: 'Iteration' });
  }
  async at(iteration: number): Promise<void> {
    await expect(this.field).toHaveValue(String(iteration));
  }
  tab(name: string): Locator {
    return this.page.getByRole('tab', { name });
  }
  get panel(): Locator {
    return this.page.getByRole('tabpanel');
  }
  action(name: string): Locator {
    return this.panel.locator(`[data-testid=action][data-action="${name}"]`);
  }
  /** How many iterations there are of each kind, `total` among them. */
  async totals(): Promise<Record<string, number>> {
    const all = await this.counts.locator('[data-count]').evaluateAll((parts) => parts.map((part) => [part.getAttribute('data-count')!, Number(part.textContent!.replace(/,/g, ''))] as const));
    return Object.fromEntries(all);
  }
  /** Goes to a step of the graph by keys, as the tree is for. */
  async walk(path: string): Promise<void> {
    const tree = this.page.getByRole('tree', { name: 'Steps' });
    await tree.locator('[data-testid=node][tabindex="0"]').focus();
    await this.page.keyboard.press('Home');
    for (let n = 0; n < 40; n += 1) {
      if ((await this.page.locator(':focus').getAttribute('data-path')) === path) return;
      await this.page.keyboard.press('ArrowDown');
    }
    throw new Error(`no arrow leads to ${path}`);
  }
  /** Waits until a view shows something and asks for nothing more. */
  async shown(): Promise<void> {
    await expect(this.panel).not.toBeEmpty();
    await expect(this.panel.getByText('…', { exact: true })).toHaveCount(0);
  }

  /** Waits until the list of runs is there. */
  async listed(): Promise<void> {
    await expect(this.rows.first()).toBeVisible();
  }
}
