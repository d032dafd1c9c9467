// The list of runs: of any length, steady while runs come, and the same after a reload or Back.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Console } from '../lib/console.js';
import { figure, measure, quantile } from '../lib/figures.js';
import { many } from '../lib/many.js';
import { HERE, type Server } from '../lib/server.js';
import type { Response } from '@playwright/test';
import { expect, test, type Page } from '../lib/test.js';

const RUNS = Number(process.env.E2E_RUNS ?? 100_000);

/** Keeps a workflow under its name. */
async function keep(server: Server, name: string): Promise<void> {
  const text = readFileSync(join(HERE, 'workflows', `${name}.yaml`), 'utf8');
  expect((await server.ask('PUT', `/v1/workflows/${name}`, { text })).status).toBe(201);
}

/** Turns the wheel, and gives what each frame took and the most rows there were. */
async function scrolled(page: Page): Promise<{ frames: number[]; rows: number }> {
  await page.evaluate(() => {
    const seen = { frames: [] as number[], rows: 0 };
    let before = performance.now();
    const frame = (now: number): void => {
      seen.frames.push(now - before);
      before = now;
      seen.rows = Math.max(seen.rows, document.querySelectorAll('[role=grid] [role=row]').length);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    Object.assign(window, { seen });
  });
  for (let n = 0; n < 120; n += 1) await page.mouse.wheel(0, n % 40 === 39 ? 200_000 : 240);
  const { frames, rows } = await page.evaluate(() => (window as unknown as { seen: { frames: number[]; rows: number } }).seen);
  return { frames: frames.slice(2), rows };
}

test(`5: ${RUNS.toLocaleString('en')} runs: few rows in the page, the last one in reach, no slow frames`, { tag: '@timing' }, async ({ page, context, serve, world }) => {
  test.setTimeout(240_000);
  const server = await serve({ args: ['--max-runs', '200000'] });
  await keep(server, 'tiny');
  const begun = Date.now();
  await many(server, RUNS);
  figure('runs started a second', RUNS / ((Date.now() - begun) / 1000), '/s');

  const console = new Console(page, server.url);
  const opened = Date.now();
  await console.open();
  await console.listed();
  figure(`list of ${RUNS} runs usable`, Date.now() - opened, 'ms');
  await expect(console.grid).toHaveAttribute('aria-rowcount', String(RUNS + 1));
  await expect(page.getByTestId('total')).toContainText(RUNS.toLocaleString('en-US'));
  const most = (): Promise<number> => console.rows.count();
  expect(await most()).toBeLessThanOrEqual(60);

  // Scrolling with the wheel, through rows that are there and rows that must come; and an empty page for comparison.
  const floor = await context.newPage();
  world.on('/empty', () => ({ html: '<!doctype html><title>x</title><div style="height:9000000px">x</div>' }));
  await floor.goto(`${world.url}/empty`);
  const least = quantile((await scrolled(floor)).frames, 0.95);
  await floor.close();
  await page.bringToFront();
  await console.grid.hover();
  const { frames, rows } = await scrolled(page);
  expect(rows, 'rows in the page, with the head').toBeLessThanOrEqual(61);
  figure('frame while scrolling an empty page, p95', least, 'ms');
  measure('frame while scrolling, p95', quantile(frames, 0.95), 32, least, 2);

  await console.grid.focus();
  await page.keyboard.press('End');
  await expect(console.row('r-000000')).toBeInViewport();
  expect(await most()).toBeLessThanOrEqual(60);
  await page.keyboard.press('Home');
  await expect(console.row('r-000000')).toHaveCount(0);

  // One of them is found by its text.
  const searched = Date.now();
  await page.getByRole('searchbox').fill('r-001234');
  await expect(console.row('r-001234')).toBeVisible();
  await expect(console.rows).toHaveCount(1);
  figure(`search in ${RUNS} runs, with 250 ms of waiting for keys`, Date.now() - searched, 'ms');
});

test('6: new runs announce themselves and do not move the row in focus', async ({ page, serve }) => {
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 150);
  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  await console.grid.focus();
  for (let n = 0; n < 40; n += 1) await page.keyboard.press('j');
  const active = console.grid.locator('[role=row].active');
  const run = await active.getAttribute('data-run');
  const place = await active.boundingBox();
  for (let n = 0; n < 30; n += 1) await server.post('/v1/runs', { workflow: 'tiny', run: `new-${n}` });
  await expect(console.fresh).toHaveText(/30 new runs/);
  expect(await active.getAttribute('data-run')).toBe(run);
  expect(await active.boundingBox()).toEqual(place);
  await expect(console.row('new-0')).toHaveCount(0);
  // On request, they are loaded.
  await console.fresh.click();
  await expect(console.row('new-29')).toBeVisible();
  await expect(console.fresh).toHaveCount(0);
});

test('7: filters survive a reload and Back', async ({ page, serve, world }) => {
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 120);
  for (let n = 0; n < 70; n += 1) await server.run('approval.yaml', { run: `asks-${n}` });
  world.on('/broken', () => ({ status: 404 }));
  await server.run('backoff.yaml', { run: 'broken', input: { base: world.url } });
  await server.result('broken');
  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  await expect(console.facet('Succeeded')).toContainText('120');
  await expect(console.facet('Waiting')).toContainText('70');
  await console.facet('Failed').click();
  await expect(console.rows).toHaveCount(1);
  await console.facet('Failed').click();
  await console.facet('Waiting').click();
  await expect(page.getByTestId('total')).toHaveText('70 runs');
  await expect(page).toHaveURL(/status=Waiting/);
  await page.reload();
  await expect(page.getByTestId('total')).toHaveText('70 runs');
  await expect(console.facet('Waiting')).toHaveAttribute('aria-pressed', 'true');
  await console.grid.focus();
  for (let n = 0; n < 50; n += 1) await page.keyboard.press('j');
  const active = console.grid.locator('[role=row].active');
  const run = (await active.getAttribute('data-run'))!;
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/ui/runs/${run}`));
  await page.goBack();
  await expect(page).toHaveURL(/status=Waiting/);
  await expect(page.getByTestId('total')).toHaveText('70 runs');
  await expect(console.row(run)).toBeInViewport();
});

/** Resolves when the page has drawn what this answer changes. */
async function shown(page: Page, answer: Promise<Response>): Promise<void> {
  await (await answer).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

test('the rows in view are loaded after Back, and after a restart of the server', async ({ page, serve, watch }) => {
  watch.allowed = [/Failed to fetch|NetworkError|ERR_/];
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 350);
  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  const bottom = page.locator('[role=row][aria-rowindex="351"][data-run]');
  await console.grid.press('End');
  await expect(bottom).toBeVisible();
  // The list is requested again before its rows are drawn.
  await page.route(/\/v1\/runs\?/, async (route) => {
    const response = await route.fetch();
    await new Promise((after) => setTimeout(after, 200));
    await route.fulfill({ response });
  });
  await bottom.getByRole('link').click();
  await expect(page.getByTestId('run-status')).toBeVisible();
  const reloaded = page.waitForResponse(/\/v1\/runs\?.*facets=true/);
  await page.goBack();
  await shown(page, reloaded);
  await expect(bottom).toBeVisible();
  await page.unrouteAll({ behavior: 'wait' });

  await console.grid.press('Home');
  const top = page.locator('[role=row][aria-rowindex="2"][data-run]');
  await expect(top).toBeVisible();
  await server.kill();
  await expect(console.state).toContainText('Reconnecting');
  const again = page.waitForResponse(/\/v1\/runs\?.*since=/);
  await server.begin();
  await shown(page, again);
  await expect(top).toBeVisible();
  await console.grid.press('End');
  await expect(bottom).toBeVisible();
});

test('Select all selects the runs of the list, and no later ones', async ({ page, serve }) => {
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 130);
  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  await expect(console.state).toHaveText('Connected');
  for (let n = 0; n < 5; n += 1) await server.post('/v1/runs', { workflow: 'tiny', run: `later-${n}` });
  await expect(console.fresh).toBeVisible();
  const total = (await page.getByTestId('total').textContent()) ?? '';
  expect(total).not.toBe('135 runs');
  await page.getByRole('button', { name: /^Select all/ }).click();
  await expect(page.getByTestId('bulk')).toContainText(`${total} selected`);
  // The later pages have no later runs either.
  await console.grid.focus();
  await page.keyboard.press('End');
  await expect(console.row('r-000000')).toBeVisible();
  await expect(page.getByTestId('total')).toHaveText(total);
});

test('a change of the filter clears the selection', async ({ page, serve }) => {
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 3);
  await server.run('approval.yaml', { run: 'asks' });
  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  await console.row('asks').getByRole('checkbox').click();
  await expect(page.getByTestId('bulk')).toContainText('1 run selected');
  await console.facet('Succeeded').click();
  await expect(page.getByTestId('total')).toHaveText('3 runs');
  await expect(page.getByTestId('bulk')).toHaveCount(0);
  await console.facet('Succeeded').click();
  await expect(console.row('asks').getByRole('checkbox')).not.toBeChecked();
});

test('Shift selects a range with the rows that are not loaded', async ({ page, serve }) => {
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 650);
  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  await console.rows.first().getByRole('checkbox').click();
  await console.grid.focus();
  await page.keyboard.press('End');
  const last = console.grid.locator('[aria-rowindex="651"]').getByRole('checkbox');
  // If a page cannot be loaded, the selection does not change.
  const broken = (url: URL): boolean => url.pathname === '/v1/runs' && url.searchParams.get('offset') === '300';
  await page.route(broken, (route) => route.abort());
  await last.click({ modifiers: ['Shift'] });
  await expect(page.getByText('The selection is unchanged')).toBeVisible();
  await expect(page.getByTestId('bulk')).toContainText('1 run selected');
  await page.unroute(broken);
  await last.click({ modifiers: ['Shift'] });
  await expect(page.getByTestId('bulk')).toContainText('650 runs selected');
});

test('a deleted run leaves the list and the counts, and its page says so', async ({ page, context, serve }) => {
  // The stream is in the tab then.
  await context.addInitScript(() => Object.assign(window, { SharedWorker: undefined }));
  const server = await serve();
  await keep(server, 'tiny');
  await many(server, 2);
  for (const run of ['r-000000', 'r-000001']) await server.result(run);
  await server.run('approval.yaml', { run: 'asks' });
  const console = new Console(page, server.url);
  await console.open();
  await expect(console.state).toHaveText('Connected');
  await expect(page.getByTestId('total')).toHaveText('3 runs');
  const other = new Console(await context.newPage(), server.url);
  await other.open('/runs/r-000000');
  await expect(other.page.getByTestId('run-status')).toBeVisible();
  await expect(other.state).toHaveText('Connected');
  await server.post('/v1/prune', { workflow: 'tiny', older_than: 'PT0S' });
  await expect(other.page.getByText('Unknown run r-000000')).toBeVisible();
  await expect(page.getByTestId('total')).toHaveText('1 run');
  await expect(console.rows).toHaveCount(1);
  await expect(console.row('asks')).toBeVisible();
  await expect(console.facet('Succeeded')).toHaveText(/0$/);
});
