// Columns of the list and the border between graph and data are sized by mouse and by keys, and stay so.
import { Console } from '../lib/console.js';
import { expect, test, type Locator, type Page } from '../lib/test.js';

const LONG = `name: many-rounds
actions:
  wait_for_the_nightly_export_of_all_customers:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 1000000, timeout: P1D }
    delay: PT1H
    actions:
      look: { type: compose, inputs: 1 }
`;

const width = async (place: Locator): Promise<number> => (await place.boundingBox())!.width;

async function drag(page: Page, border: Locator, by: number): Promise<void> {
  const box = (await border.boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + by / 2, y, { steps: 4 });
  await page.mouse.move(x + by, y, { steps: 4 });
  await page.mouse.up();
}

test('columns are sized by mouse and by keys, stay so, and are reset', async ({ page, gallery }) => {
  await page.setViewportSize({ width: 1400, height: 800 });
  const console = new Console(page, gallery.url);
  await console.open();
  await console.listed();
  const cell = console.row(gallery.nested).locator('.cell-workflow');
  const head = console.grid.getByRole('columnheader', { name: 'Workflow' });
  const border = page.getByRole('separator', { name: 'Width of Workflow' });
  const before = await width(cell);
  await drag(page, border, 70);
  await expect.poll(() => width(cell)).toBeCloseTo(before + 70, -0.5);
  expect(await width(head)).toBeCloseTo(await width(cell), 0);
  await expect(border).toHaveAttribute('aria-valuenow', String(Math.round(before + 70)));

  // Keys do the same, and move no row.
  const row = await console.grid.getAttribute('aria-activedescendant');
  await border.focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => width(cell)).toBeCloseTo(before + 38, -0.5);
  expect(await console.grid.getAttribute('aria-activedescendant')).toBe(row);
  // A column at the right side grows to the left.
  const took = console.row(gallery.nested).locator('.cell-took');
  const usual = await width(took);
  await drag(page, page.getByRole('separator', { name: 'Width of Took' }), -40);
  await expect.poll(() => width(took)).toBeCloseTo(usual + 40, -0.5);

  await page.reload();
  await console.listed();
  expect(await width(cell)).toBeCloseTo(before + 38, -0.5);
  expect(await width(took)).toBeCloseTo(usual + 40, -0.5);
  await page.getByRole('separator', { name: 'Width of Took' }).dblclick();
  await expect.poll(() => width(took)).toBe(usual);
  await border.dblclick();
  await expect.poll(() => width(cell)).toBeCloseTo(before, -0.5);
  expect(await page.evaluate(() => JSON.parse(localStorage.getItem('windlass.columns')!))).not.toHaveProperty('workflow');
});

test('the loop cell shortens the name of its loop and never the number', async ({ page, serve }) => {
  await page.setViewportSize({ width: 1100, height: 800 });
  const server = await serve({ args: ['--max-count', '1000000'] });
  await server.post('/v1/runs', { text: LONG, run: 'long' });
  const console = new Console(page, server.url);
  await console.open();
  const cell = console.row('long').locator('.cell-loop');
  const number = cell.locator('.loop-number');
  await expect(number).toHaveText('1/1,000,000');
  for (const size of ['usual', 'least']) {
    if (size === 'least') {
      await page.getByRole('separator', { name: 'Width of Loop' }).focus();
      await page.keyboard.press('Home');
    }
    const [whole, inside] = [(await cell.boundingBox())!, (await number.boundingBox())!];
    expect(inside.x + inside.width, size).toBeLessThanOrEqual(whole.x + whole.width);
    expect(await number.evaluate((one) => one.scrollWidth <= one.clientWidth || one.clientWidth === 0), size).toBe(true);
    expect(await cell.locator('.loop-name').evaluate((one) => one.scrollWidth > one.clientWidth), `${size}: the name is shortened`).toBe(true);
  }
});

test('the border between graph and data is moved by mouse and by keys, and stays', async ({ page, gallery }) => {
  await page.setViewportSize({ width: 1400, height: 800 });
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.nested}`);
  await console.shown();
  const border = page.getByRole('separator', { name: 'Width of the data' });
  const side = page.locator('.run-side');
  await expect(border).toHaveAttribute('aria-valuenow', '44');
  await drag(page, border, -140);
  await expect(border).toHaveAttribute('aria-valuenow', '54');
  expect(await width(side)).toBeCloseTo(756, -0.5);
  await page.keyboard.press('ArrowRight');
  await expect(border).toHaveAttribute('aria-valuenow', '49');
  await page.keyboard.press('Home');
  await expect(border).toHaveAttribute('aria-valuenow', '20');
  await page.keyboard.press('End');
  await expect(border).toHaveAttribute('aria-valuenow', '80');
  await page.reload();
  await console.shown();
  await expect(border).toHaveAttribute('aria-valuenow', '80');
  await border.dblclick();
  await expect(border).toHaveAttribute('aria-valuenow', '44');
});
