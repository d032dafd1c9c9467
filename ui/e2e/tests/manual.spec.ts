// The manual in the console: every page is there, its links lead somewhere, and all of it can be searched.
import { faults } from '../lib/axe.js';
import { Console } from '../lib/console.js';
import { expect, test } from '../lib/test.js';

test('the manual is read, searched, and every link in it leads to a place', async ({ page, gallery }) => {
  test.setTimeout(120_000);
  const console = new Console(page, gallery.url);
  await console.open('/runs');
  await page.keyboard.press('?');
  await page.getByRole('link', { name: 'The manual' }).click();
  const manual = page.getByTestId('manual');
  await expect(manual.getByRole('heading', { level: 1 })).toHaveText('Start here');
  await expect(manual.locator('table').first()).toBeVisible();
  expect(await faults(page)).toEqual([]);
  await page.getByLabel('Search the manual').fill('retry-after');
  await manual.getByRole('link').first().click();
  await expect(page).toHaveURL(/\/ui\/docs\/[a-z/-]+#/);
  const anchor = decodeURIComponent(new URL(page.url()).hash.slice(1));
  await expect(page.locator(`[id="${anchor}"]`)).toBeInViewport();
  const pages = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).pathname));
  expect(pages.length).toBeGreaterThan(18);
  const links = new Set<string>();
  const places = new Set(pages);
  for (const one of pages) {
    await page.getByRole('navigation', { name: 'Pages' }).locator(`a[href="${one}"]`).click();
    await expect(page).toHaveURL(new RegExp(`${one}$`));
    await expect(manual.getByRole('heading', { level: 1 })).toBeVisible();
    for (const id of await manual.locator('[id]').evaluateAll((all) => all.map((element) => element.id))) places.add(`${one}#${id}`);
    for (const link of await manual.locator('a[href^="/ui/docs"]').evaluateAll((all) => all.map((element) => element.getAttribute('href') ?? ''))) links.add(link);
  }
  expect([...links].filter((link) => !places.has(link))).toEqual([]);
});
