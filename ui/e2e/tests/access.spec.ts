// 25: for everybody: by axe in each look, and by keyboard alone.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import { Console } from '../lib/console.js';
import { fails, PAGES, range } from '../lib/gallery.js';
import { expect, test, type Locator, type Page } from '../lib/test.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds against WCAG 2.2 A and AA. */
async function faults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (where: Document, options: unknown) => Promise<AxeResults> } }).axe;
    // The experimental rule takes the small second line of a step for its label.
    const rules = { 'label-content-name-mismatch': { enabled: false } };
    const found = await axe.run(document, { preload: false, rules, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] });
    return found.violations.map((one) => `${one.id}: ${one.nodes.length}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} (${node.any.map((check) => check.message).join('; ')})`).join(' | ')}`);
  });
}

const LOOKS = [
  { name: 'light', use: { colorScheme: 'light' } },
  { name: 'dark', use: { colorScheme: 'dark' } },
  { name: 'forced colours', use: { forcedColors: 'active' } },
  { name: '320 px wide', use: { viewport: { width: 320, height: 640 } } },
] as const;

for (const look of LOOKS) {
  test.describe(look.name, () => {
    test.use(look.use);
    test(`25: axe finds nothing in ${look.name}`, async ({ page, gallery }) => {
      const console = new Console(page, gallery.url);
      const found: Record<string, string[]> = {};
      const look_at = async (name: string): Promise<void> => {
        const here = await faults(page);
        if (look.name === '320 px wide') {
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          if (wide > 320) here.push(`the page is ${wide} px wide`);
        }
        if (here.length > 0) found[name] = here;
      };
      await console.open();
      await console.listed();
      await look_at('runs');
      await page.keyboard.press('?');
      await expect(page.getByRole('dialog')).toBeVisible();
      await look_at('help');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+k');
      await expect(page.getByRole('dialog')).toBeVisible();
      await look_at('palette');
      await page.keyboard.press('Escape');
      for (const [run, place] of [[gallery.nested, ''], [gallery.pages, `?loop=pages&it=${range(PAGES).find(fails)}`], [gallery.approval, '']]) {
        await console.open(`/runs/${run}${place}`);
        await expect(console.why).not.toBeEmpty();
        await page.getByRole('button', { name: 'Expand all' }).click();
        for (const tab of ['Data', 'Timeline', 'Source', 'History']) {
          await console.tab(tab).click();
          await console.shown();
          await look_at(`${run}, ${tab}`);
        }
      }
      await page.getByRole('button', { name: 'Signal' }).click();
      await expect(page.getByRole('dialog')).toBeVisible();
      await look_at('signal');
      expect(found).toEqual({});
    });
  });
}

test('25: a failure is found by keyboard alone', async ({ page, gallery }) => {
  test.setTimeout(120_000);
  const console = new Console(page, gallery.url);
  await console.open();
  await console.listed();
  const tab_to = async (place: Locator): Promise<void> => {
    for (let n = 0; n < 60; n += 1) {
      await page.keyboard.press('Tab');
      if (!(await place.evaluate((one) => one === document.activeElement))) continue;
      // Where one is, is seen.
      expect(await place.evaluate((one) => `${getComputedStyle(one).outlineStyle} ${getComputedStyle(one).boxShadow}`)).not.toBe('none none');
      return;
    }
    throw new Error(`no Tab leads to ${String(place)}`);
  };
  await tab_to(console.facet('Failed'));
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/status=Failed/);
  await expect(console.row(gallery.pages)).toBeVisible();
  await tab_to(console.grid);
  for (let n = 0; n < 5 && !(await console.row(gallery.pages).evaluate((row) => row.classList.contains('active'))); n += 1) await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/ui/runs/${gallery.pages}`));
  await expect(console.why).toContainText(/Failed/);
  // To the first failed iteration, its error, and what its attempts said.
  await tab_to(console.strip);
  await page.keyboard.press('Home');
  await console.at(1);
  await page.keyboard.press('f');
  await console.at(range(PAGES).find(fails)!);
  await expect(console.action('fetch')).toContainText('2 attempts', { timeout: 40_000 });
  await expect(console.action('fetch')).toContainText('500');
  // On to the views of it.
  await tab_to(console.tab('Data'));
  await page.keyboard.press('ArrowRight');
  await expect(console.tab('Timeline')).toHaveAttribute('aria-selected', 'true');
  await expect(console.panel).toContainText('attempt 2');
  // Back is the browser's: no view is turned.
  await page.keyboard.press('Alt+ArrowRight');
  await expect(console.tab('Timeline')).toHaveAttribute('aria-selected', 'true');
});
