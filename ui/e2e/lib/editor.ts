// The editor as a person meets it.
import { expect, type Locator, type Page } from '@playwright/test';

export class Editor {
  constructor(readonly page: Page, readonly url: string) {}

  async open(query = ''): Promise<void> {
    await this.page.goto(`${this.url}/ui/edit${query}`);
    await expect(this.text).toBeVisible();
  }

  get text(): Locator {
    return this.page.getByRole('textbox', { name: 'Text of the workflow' });
  }
  get problems(): Locator {
    return this.page.getByTestId('problem');
  }
  get verdict(): Locator {
    return this.page.getByTestId('verdict-line');
  }
  get panel(): Locator {
    return this.page.getByTestId('panel');
  }
  node(path: string): Locator {
    return this.page.locator(`[data-testid=node][data-path="${path}"]`);
  }
  field(id: string): Locator {
    return this.panel.locator(`[data-testid=field][data-field="${id}"]`);
  }
  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name });
  }
  get dialog(): Locator {
    return this.page.getByRole('dialog');
  }

  /** All of the text: CodeMirror draws only what is in view, so it is read from the editor's state. */
  async whole(): Promise<string> {
    return this.page.evaluate(() => {
      const host = document.querySelector('[data-testid=code]');
      const content = host?.shadowRoot?.querySelector('.cm-content') as (Element & { cmTile?: { view: { state: { doc: unknown } } }; cmView?: { view: { state: { doc: unknown } } } }) | null;
      return String((content?.cmTile ?? content?.cmView)?.view.state.doc);
    });
  }

  /** Writes a text in place of what is there. */
  async write(text: string): Promise<void> {
    await this.text.focus();
    await this.page.keyboard.press('Control+a');
    await this.page.keyboard.insertText(text);
  }

  async right(): Promise<void> {
    await expect(this.verdict).toHaveText('Valid');
  }
}
