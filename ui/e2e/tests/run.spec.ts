// One run: its graph and loops, its iterations, and why it is where it is.
import { Console } from '../lib/console.js';
import { fails, PAGES, range } from '../lib/gallery.js';
import { expect, test } from '../lib/test.js';
import { Gate } from '../lib/world.js';

const iteration = (page: { url(): string }): string | null => new URL(page.url()).searchParams.get('it');

test('8: a collapsed loop shows its iteration', async ({ page, serve, world }) => {
  const gates = range(5).map(() => new Gate());
  world.on('/jobs/', async (n) => {
    await gates[n - 1].opened;
    return { body: { status: 'running', progress: n * 10 } };
  });
  const server = await serve();
  const run = await server.run('poll.yaml', { input: { base: world.url } });
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.count('poll')).toHaveText('↻ 1/5');
  for (const n of [2, 3]) {
    gates[n - 2].open();
    await world.called('/jobs/export', n);
    await expect(console.count('poll')).toHaveText(`↻ ${n}/5`);
  }
  await expect(console.node('poll')).toHaveAttribute('data-state', 'running');
  await expect(console.node('poll')).toHaveAttribute('aria-expanded', 'false');
  for (const gate of gates) gate.open();
  await expect(page.getByTestId('run-status')).toHaveText(/Failed/);
});

test('9: expanding shows the inner steps; Escape collapses and keeps the focus', async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.nested}`);
  const outer = console.node('outer');
  await expect(outer).toHaveAttribute('aria-expanded', 'false');
  await expect(console.node('outer/plan')).toHaveCount(0);
  await console.walk('outer');
  await page.keyboard.press('ArrowRight');
  await expect(outer).toHaveAttribute('aria-expanded', 'true');
  await expect(console.node('outer/plan')).toBeVisible();
  await expect(console.node('outer/middle')).toHaveAttribute('aria-expanded', 'false');
  // Deeper, in place.
  await console.walk('outer/middle');
  await page.keyboard.press('ArrowRight');
  await expect(console.node('outer/middle/inner')).toBeVisible();
  await console.walk('outer/middle/inner');
  await page.keyboard.press('ArrowRight');
  await expect(console.node('outer/middle/inner/call')).toBeVisible();
  await expect(outer).toHaveAttribute('aria-expanded', 'true');
  for (const [path, gone] of [['outer/middle/inner', 'outer/middle/inner/call'], ['outer/middle', 'outer/middle/inner'], ['outer', 'outer/middle']]) {
    await console.walk(path);
    await page.keyboard.press('Escape');
    await expect(console.node(gone)).toHaveCount(0);
    await expect(console.node(path)).toHaveAttribute('aria-expanded', 'false');
    await expect(console.node(path)).toBeFocused();
  }
});

test('10: drilling three levels; the URL restores the place', async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.nested}`);
  for (const path of ['outer', 'outer/middle', 'outer/middle/inner']) {
    await console.walk(path);
    await page.keyboard.press('Enter');
    await expect(console.node(path)).toHaveCount(0);
  }
  await expect(console.node('outer/middle/inner/call')).toBeVisible();
  // The second round of the outer loop, the third of the middle one, the fifth of the inner one.
  const place = new URL(page.url());
  place.searchParams.set('loop', 'outer#1/middle#2/inner');
  place.searchParams.set('it', '5');
  await page.goto(place.href);
  await expect(console.crumbs).toHaveText(/run\s*›\s*outer 2\s*›\s*middle 3\s*›\s*inner 5/);
  await expect(console.node('outer/middle/inner/call')).toHaveAttribute('data-state', 'succeeded');
  await expect(console.action('call')).toContainText(/outer.*2.*middle.*3.*inner.*5/s);
  const before = page.url();
  await page.reload();
  await expect(console.crumbs).toHaveText(/run\s*›\s*outer 2\s*›\s*middle 3\s*›\s*inner 5/);
  await expect(console.action('call')).toContainText(/outer.*2.*middle.*3.*inner.*5/s);
  expect(page.url()).toBe(before);
  // Out again, one level at a time.
  await console.walk('outer/middle/inner/call');
  await page.keyboard.press('Escape');
  await expect(console.crumbs).toHaveText(/run\s*›\s*outer 2\s*›\s*middle 3$/);
  await console.crumbs.getByRole('button', { name: 'run' }).click();
  await expect(console.node('outer')).toBeVisible();
});

test(`11: of ${PAGES.toLocaleString('en')} iterations, f goes to each failed one and F back`, async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.pages}?loop=pages&it=1`);
  await console.at(1);
  const failed = range(PAGES).filter(fails);
  expect(failed.length).toBeGreaterThan(PAGES / 1000);
  await console.strip.focus();
  for (const n of failed) {
    await page.keyboard.press('f');
    await console.at(n);
  }
  await page.keyboard.press('f');
  await expect(page.getByText('No failed iteration after this one.')).toBeVisible();
  await console.at(failed.at(-1)!);
  for (const n of failed.slice(0, -1).reverse()) {
    await page.keyboard.press('F');
    await console.at(n);
  }
  expect(iteration(page)).toBe(String(failed[0]));
});

test('12: the chosen iteration survives scrolling, a hundred live events and a reload', async ({ page, serve, world }) => {
  const gate = new Gate();
  world.on('/jobs/', async (n) => {
    if (n > 20) await gate.opened;
    return { body: { status: n > 160 ? 'done' : 'running', n } };
  });
  const server = await serve();
  const run = await server.run('poll.yaml', { input: { base: world.url, count: 1000 } });
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.count('poll')).toHaveText('↻ 21/1,000');
  await console.field.fill('7');
  await console.field.press('Enter');
  await console.at(7);
  await expect(console.action('check')).toContainText(/"n": ?7|n.*7/);
  gate.open();
  await server.result(run);
  await expect(page.getByTestId('run-status')).toHaveText(/Succeeded/);
  await expect(page.getByTestId('pager-total')).toHaveText('/ 161');
  await console.at(7);
  expect(iteration(page)).toBe('7');
  await page.mouse.wheel(0, 2_000);
  await console.panel.hover();
  await page.mouse.wheel(0, 2_000);
  await console.at(7);
  await page.reload();
  await console.at(7);
  await expect(console.action('check')).toContainText(/"n": ?7|n.*7/);
});

test('13: a branch that did not run in #2 shows nothing of #1', async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.branch}?loop=rounds&it=1`);
  await page.getByRole('button', { name: 'Expand all' }).click();
const odd = page.locator('[data-testid=node][data-path$="/odd"]');
  const even = page.locator('[data-testid=node][data-path$="/even"]');
  await expect(odd).toHaveAttribute('data-state', 'succeeded');
  await expect(even).toHaveAttribute('data-state', 'not-run');
  await expect(console.action('odd')).toContainText('odd_of');
  await expect(console.action('even')).toHaveCount(0);
  await console.strip.focus();
  await page.keyboard.press(']');
  await console.at(2);
  await expect(even).toHaveAttribute('data-state', 'succeeded');
  await expect(odd).toHaveAttribute('data-state', 'not-run');
  await expect(odd).toHaveAccessibleName(/did not run in this iteration/);
  await expect(console.action('odd')).toHaveCount(0);
  await expect(console.panel).not.toContainText('odd_of');
});

test('14: of a cancelled run every iteration is reachable', async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.cancelled}`);
  await expect(page.getByTestId('run-status')).toHaveText(/Cancelled/);
  await console.field.fill('1');
  await console.field.press('Enter');
  for (const n of range(12)) {
    await console.at(n);
    await expect(console.action('check')).toContainText(new RegExp(`n\\D+${n}\\b`));
    await console.strip.focus();
    await page.keyboard.press(']');
  }
  // The one that was cut.
  await console.at(13);
  await expect(page.getByTestId('iteration-line')).toContainText('Cancelled');
});

test('15: counts of the strip add up at every zoom', async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.pages}?loop=pages&it=1`);
  await expect(console.counts).toBeVisible();
  const failed = range(PAGES).filter(fails).length;
  const whole = await console.totals();
  expect(whole).toMatchObject({ total: PAGES, failed, succeeded: PAGES - failed });
  await console.strip.hover();
  for (let zoom = 0; zoom < 8; zoom += 1) {
    const before = await page.locator('.strip-axis').innerText();
    await page.mouse.wheel(0, -200);
    await expect(page.locator('.strip-axis')).not.toHaveText(before, { useInnerText: true });
    const [from, to] = (await page.locator('.strip-axis > span').allInnerTexts()).map((text) => Number(text.replace(/,/g, '')));
    const inside = range(PAGES).filter((n) => n >= from && n <= to);
    // The strip's parts come with the next answer.
    await expect.poll(() => console.totals(), { message: `of ${from} to ${to}` }).toMatchObject({
      total: inside.length,
      failed: inside.filter(fails).length,
      succeeded: inside.filter((n) => !fails(n)).length,
    });
  }
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect.poll(() => console.totals()).toEqual(whole);
});

test('what is not stored of a fast loop is not reported as equal or as missing', async ({ page, serve }) => {
  const server = await serve();
  const run = await server.run('ticks.yaml', { input: { count: 8_000 } });
  await server.result(run);
  const console = new Console(page, server.url);
  const { iterations } = await server.get(`/v1/runs/${run}/iterations?loop=tick&from=101&limit=1000`);
  const it = 1 + iterations.find((row: { stored: string }) => row.stored === 'summary').iteration;
  await console.open(`/runs/${run}?loop=tick&it=${it}&watch=${encodeURIComponent('/beat')}&vs=previous`);
  await expect(page.getByTestId('difference').getByRole('alert')).toContainText('are not stored');
  await expect(page.getByText('Nothing changed.')).toHaveCount(0);
  await page.keyboard.press('c');
  await expect(page.getByText(/values are not stored: [\d,]+ iterations/)).toBeVisible();
  await expect(console.field).not.toHaveValue(String(it));
  // The outputs of the first iterations stay.
  await console.open(`/runs/${run}?loop=tick&it=1`);
  await expect(console.panel).toContainText('The variables of this iteration are not stored, and of its steps only what is shown here.');
  await expect(console.action('beat')).toContainText('outputs');
  // The history begins with the first stored event.
  await console.tab('History').click();
  await expect(page.getByTestId('history-count')).toHaveText(/^1\d,\d{3} events/);
  const history = page.getByRole('list', { name: 'History' });
  await expect(history).toContainText('RunFinished');
  await history.evaluate((list) => list.scrollTo(0, 0));
  await expect(history.getByRole('listitem').first()).toHaveText(/^Events 1 to [\d,]+ are not stored\./);
  await console.shown();
});

test('16: the difference of #17 and #18 is exactly what changed', async ({ page, gallery }) => {
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.drift}?loop=drift&it=18`);
  await console.at(18);
  await console.strip.focus();
  await page.keyboard.press('d');
  const table = page.getByTestId('difference').getByRole('table');
  await expect(table).toBeVisible();
  const cells = await table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent?.trim())));
  expect(cells.map(([path, from, to]) => [path?.replace(/^.*body\./, ''), from, to]).sort()).toEqual([
    ['added', 'null', '"yes"'],
    ['gone', 'true', 'null'],
    ['nested.list[1]', '2', '20'],
    ['state', '"queued"', '"running"'],
  ].sort());
  // The number of an iteration is an integer from 1.
  for (const text of ['-1', '1.5']) {
    await page.keyboard.press('g');
    await page.keyboard.type(text);
    await page.keyboard.press('Enter');
    await expect(page.getByText('Enter a number from 1 to 30.')).toBeVisible();
    await console.at(18);
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await console.strip.focus();
  }
  // Against any other one; between equal ones there is nothing.
  await page.getByRole('textbox', { name: 'Iteration to compare with' }).fill('29');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Nothing changed.')).toBeVisible();
  await expect(page).toHaveURL(/vs=29/);
  // The next change is that of the watched value.
  await console.open(`/runs/${gallery.drift}?loop=drift&it=2`);
  await console.panel.getByText('body', { exact: true }).last().click();
  await page.getByRole('button', { name: 'Watch /read/body/state' }).click();
  await page.keyboard.press('c');
  await console.at(18);
  await page.keyboard.press('c');
  await expect(page.getByText('No change after this one.')).toBeVisible();
  // An address with a loop that the run does not have.
  await console.open(`/runs/${gallery.drift}?loop=zz&it=3`);
  await expect(page.getByRole('alert')).toContainText('has no loop `zz`; it has drift');
  await expect(page.getByText(/iteration –|Iteration 3/)).toHaveCount(0);
  await page.getByRole('button', { name: 'Show the run without this loop' }).click();
  await console.at(30);
});
