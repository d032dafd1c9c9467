// What moves is shown while it moves: over the death of the server, in many tabs, and at many events a second.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Console } from '../lib/console.js';
import { figure, measure, MEASURED, quantile } from '../lib/figures.js';
import { range } from '../lib/gallery.js';
import { Tap } from '../lib/tap.js';
import type { Server } from '../lib/server.js';
import { expect, test, type Page } from '../lib/test.js';
import { Gate, type World } from '../lib/world.js';

test('18: over a kill -9 it reconnects by itself, and no event is lost or shown twice', async ({ page, serve, world, watch }) => {
  watch.allowed = [/Failed to fetch|NetworkError|ERR_/];
  const gates = range(30).map(() => new Gate());
  for (const n of range(9)) gates[n - 1].open();
  world.on('/jobs/', async (n) => {
    if (n <= 30) await gates[n - 1].opened;
    return { body: { status: n >= 30 ? 'done' : 'running', n } };
  });
  const server = await serve();
  const run = await server.run('poll.yaml', { input: { base: world.url, count: 100 } });
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}?tab=history`);
  await expect(console.count('poll')).toHaveText('↻ 10/100');
  await expect(console.state).toHaveText('Connected');

  await server.kill();
  await expect(console.state).toContainText('Reconnecting');
  await server.begin();
  await expect(console.state).toHaveText('Connected');
  // The tenth call was cut and is made again: it is the eleventh request.
  for (const gate of gates) gate.open();
  const result = await server.result(run);
  expect(result.status).toBe('Succeeded');
  await expect(page.getByTestId('run-status')).toHaveText(/Succeeded/);

  const told: { sequence: number; event: string }[] = (await server.get(`/v1/runs/${run}/history?events=true&limit=1000`)).events;
  await expect(page.getByTestId('history-count')).toHaveText(`${told.length} events`);
  // Each event of the server has its row, once, in order.
  const rows = page.locator('[data-sequence]');
  const list = page.getByRole('list', { name: 'History' });
  const seen = new Map<number, string>();
  // It follows what comes to the end until the reader scrolls, and rows come a frame after that.
  await expect(async () => {
    await list.evaluate((one) => one.scrollTo(0, 0));
    await expect(rows.first()).toHaveAttribute('data-sequence', '1', { timeout: 500 });
  }).toPass();
  for (;;) {
    await expect(rows.filter({ hasText: '…' }).filter({ hasNot: page.locator('b') })).toHaveCount(0);
    const shown = await rows.evaluateAll((all) => all.map((row) => [Number(row.getAttribute('data-sequence')), row.querySelector('b')?.textContent ?? ''] as const));
    expect(new Set(shown.map(([sequence]) => sequence)).size).toBe(shown.length);
    for (const [sequence, event] of shown) seen.set(sequence, event);
    if (seen.has(told.length)) break;
    const last = Math.max(...seen.keys());
    await list.evaluate((one) => one.scrollBy(0, one.clientHeight / 2));
    await expect.poll(async () => Math.max(...(await rows.evaluateAll((all) => all.map((row) => Number(row.getAttribute('data-sequence'))))))).toBeGreaterThan(last);
  }
  expect([...seen].sort((a, b) => a[0] - b[0])).toEqual(told.map(({ sequence, event }) => [sequence, event]));
});

test('19: ten tabs move, and the server has one stream', { tag: '@timing' }, async ({ context, serve, world }) => {
  const gate = new Gate();
  world.on('/jobs/', async (n) => {
    if (n === 3) await gate.opened;
    return { body: { status: 'running', n } };
  });
  const server = await serve();
  const tap = await Tap.over(server);
  try {
    const runs = await Promise.all(range(5).map((n) => server.run('poll.yaml', { run: `p-${n}`, input: { base: world.url, job: `j${n}` } })));
    for (const n of range(5)) await world.called(`/jobs/j${n}`, 3);
    const tabs: Page[] = [];
    for (const n of range(10)) {
      const tab = await context.newPage();
      tabs.push(tab);
      const console = new Console(tab, tap.url);
      if (n <= 2) {
        await console.open();
        await expect(console.row('p-1')).toContainText('3/5');
      } else {
        await console.open(`/runs/${runs[n % 5]}`);
        await expect(console.count('poll')).toHaveText('↻ 3/5');
      }
    }
    const begun = Date.now();
    gate.open();
    for (const [index, tab] of tabs.entries()) {
      const console = new Console(tab, tap.url);
      if (index < 2) for (const run of runs) await expect(console.row(run)).toContainText('Failed');
      else await expect(tab.getByTestId('run-status')).toHaveText(/Failed/);
    }
    figure('ten tabs show the end of five runs', Date.now() - begun, 'ms');
    await expect.poll(() => tap.open).toBe(1);
    // One that is opened again for other runs may overlap with the one before for a moment.
    expect(tap.most).toBeLessThanOrEqual(2);
  } finally {
    tap.end();
  }
});

/** Presses a key again and again, and gives how long each took until it was painted. */
async function typing(page: Page, keys: string[], seconds: number): Promise<number[]> {
  await page.evaluate(() => {
    const window_ = window as unknown as { latencies: number[]; listening?: boolean };
    window_.latencies = [];
    if (window_.listening) return;
    window_.listening = true;
    addEventListener('keydown', (event) => requestAnimationFrame(() => setTimeout(() => window_.latencies.push(performance.now() - event.timeStamp))), { capture: true });
  });
  const until = Date.now() + seconds * 1000;
  for (let n = 0; Date.now() < until; n += 1) {
    await page.keyboard.press(keys[n % keys.length]);
    // Ten keys a second.
    await page.waitForTimeout(100);
  }
  return page.evaluate(() => (window as unknown as { latencies: number[] }).latencies);
}

test('20: while a hundred runs move, keys answer, and the final state is right', { tag: '@timing' }, async ({ page, serve, world }) => {
  test.setTimeout(150_000);
  const server = await serve();
  const console = new Console(page, server.url);
  // What a key takes in a page that does nothing.
  world.on('/empty', () => ({ html: '<!doctype html><title>x</title><p>x</p>' }));
  await page.goto(`${world.url}/empty`);
  const least = quantile(await typing(page, ['j'], MEASURED ? 3 : 0.5), 0.95);

  // A measurement needs many keys; the final state is the same after a few.
  const [runs, each, seconds] = [100, MEASURED ? 340 : 60, MEASURED ? 15 : 2];
  const names = range(runs).map((n) => `t-${String(n).padStart(3, '0')}`);
  await Promise.all(names.map((run) => server.run('ticks.yaml', { run, input: { count: each, delay: 'PT0.1S' } })));
  await console.open();
  await console.listed();
  const [begun, before] = [Date.now(), await server.metric('windlass_loop_iterations_total')];
  const list = await typing(page, ['j', 'k'], seconds);
  await console.rows.first().getByRole('link').click();
  await expect(console.why).not.toBeEmpty();
  const run = await typing(page, ['[', 'l'], seconds);
  const rate = ((await server.metric('windlass_loop_iterations_total')) - before) / ((Date.now() - begun) / 1000);
  figure('iterations a second while it was looked at', rate, '/s');
  await Promise.all(names.map((name) => server.result(name)));
  const told = (await server.get(`/v1/runs/${names[0]}/history?events=true&limit=10000`)).events.length;
  figure('events a second while it was looked at', (rate * told) / each, '/s');
  if (MEASURED) expect((rate * told) / each).toBeGreaterThanOrEqual(600);
  figure('key to paint in an empty page, p95', least, 'ms');

  await expect(page.getByTestId('run-status')).toHaveText(/Succeeded/);
  await page.keyboard.press('l');
  await expect.poll(async () => (await console.totals()).succeeded).toBe(each);
  await page.goBack();
  await expect(page).toHaveURL(/\/ui\/$/);
  await expect(console.rows.filter({ hasText: 'Succeeded' })).toHaveCount(await console.rows.count());
  await expect(console.rows.filter({ hasText: `tick ${each}/10,000` })).toHaveCount(await console.rows.count());
  measure('key to paint in the list, p95', quantile(list, 0.95), 100, least);
  measure('key to paint in a run, p95', quantile(run, 0.95), 100, least);
});

test('the lines of a command are shown while it runs, and not afterwards', async ({ page, serve }) => {
  const server = await serve();
  const go = join(server.dir, 'go');
  const run = await server.run('printing.yaml', { input: { go } });
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  const printed = page.getByTestId('printed');
  await expect(printed).toHaveText('build | compiling 1 of 2');
  writeFileSync(go, '');
  await expect(page.getByTestId('run-status')).toHaveText(/Succeeded/);
  await expect(printed).toHaveCount(0);
});

const PARTS = `name: parts
inputs: { base: { type: string } }
variables: { n: 0 }
actions:
  poll:
    type: until
    condition: "@greaterOrEquals(variables('n'), 2)"
    limit: { count: 10, timeout: PT1H }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      fetch: { type: http, inputs: { uri: "@{inputs('base')}/part/@{variables('n')}" } }
`;

test('an iteration that ended during its request is requested again', async ({ page, serve, world }) => {
  const [finished, late] = [new Gate(), new Gate()];
  const server = await serve();
  const run = await startHeld(server, world, finished);
  const asked = hold(page, /\/iteration\?.*231/, late);
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await asked;
  const again = page.waitForRequest(/\/loops$/);
  finished.open();
  await again;
  await expect(page.getByTestId('run-status')).toHaveText('Succeeded');
  late.open();
  await console.at(2);
  await expect(console.panel).toContainText('Succeeded');
  await expect(console.panel).not.toContainText('Running');
});

/** Holds the answers to these requests until the gate opens. Resolves when the server has given the first one. */
function hold(page: Page, url: RegExp, gate: Gate): Promise<void> {
  return new Promise((asked) => {
    void page.route(url, async (route) => {
      const response = await route.fetch();
      asked();
      await gate.opened;
      await route.fulfill({ response });
    });
  });
}

/** Starts a run of which the second iteration ends when the gate opens. */
async function startHeld(server: Server, world: World, finished: Gate): Promise<string> {
  world.on('/part/', async (_, path) => {
    if (path === '/part/2') await finished.opened;
    return { body: {} };
  });
  const { run } = await server.post('/v1/runs', { text: PARTS, input: { base: world.url } });
  await world.called('/part/2', 1);
  return run;
}

test('an answer that is older than an event does not replace it', async ({ page, serve, world }) => {
  const [finished, late] = [new Gate(), new Gate()];
  const server = await serve();
  const run = await startHeld(server, world, finished);
  const console = new Console(page, server.url);
  const asked = hold(page, new RegExp(`/v1/runs/${run}$`), late);
  await console.open(`/runs/${run}`);
  await asked;
  finished.open();
  await expect(page.getByTestId('run-status')).toHaveText('Succeeded');
  late.open();
  // The page requests the graph after it has taken the answer.
  await expect(page.getByTestId('node').first()).toBeVisible();
  await expect(page.getByTestId('run-status')).toHaveText('Succeeded');
});

test('a page of the list that is older than an event does not replace it', async ({ page, context, serve, world }) => {
  const [finished, late] = [new Gate(), new Gate()];
  const server = await serve();
  const run = await startHeld(server, world, finished);
  const [console, other] = [new Console(page, server.url), new Console(await context.newPage(), server.url)];
  await console.open();
  await other.open();
  for (const one of [console, other]) await expect(one.row(run)).toContainText('Running');
  const held = hold(page, /\/v1\/runs\?.*status=Running/, late);
  await console.facet('Running').click();
  await held;
  finished.open();
  // An event reaches both tabs at the same time.
  await expect(other.row(run)).toContainText('Succeeded');
  late.open();
  await expect(console.row(run)).toContainText('Succeeded');
});

test('a change before the first stream, or between two streams, is shown', async ({ page, context, serve, world }) => {
  const [first, second] = [new Gate(), new Gate()];
  const server = await serve();
  const tap = await Tap.over(server);
  try {
    const one = await startHeld(server, world, first);
    const beforeStream = new Gate();
    tap.gate = beforeStream.opened;
    const console = new Console(page, tap.url);
    await console.open();
    await expect(console.row(one)).toContainText('Running');
    first.open();
    await server.result(one);
    beforeStream.open();
    await expect(console.row(one)).toContainText('Succeeded');

    const two = await startHeld(server, world, second);
    await console.fresh.click();
    await expect(console.row(two)).toContainText('Running');
    // Another tab follows a run, so the stream is closed and opened with other topics.
    const [betweenStreams, closed] = [new Gate(), new Gate()];
    tap.gate = betweenStreams.opened;
    tap.onStream = closed.open;
    await new Console(await context.newPage(), tap.url).open(`/runs/${one}`);
    await closed.opened;
    second.open();
    await server.result(two);
    betweenStreams.open();
    await expect(console.row(two)).toContainText('Succeeded');
  } finally {
    tap.end();
  }
});
