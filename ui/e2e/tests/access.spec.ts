// 25: for everybody: by axe in each look, and by keyboard alone.
import { faults, LOOKS } from '../lib/axe.js';
import { Console } from '../lib/console.js';
import { fails, PAGES, range } from '../lib/gallery.js';
import { expect, test, type Locator } from '../lib/test.js';

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
  // To the first failed iteration, its error, and what its attempts printed.
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
