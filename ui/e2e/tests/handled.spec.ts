// Runs and iterations that succeeded although an action failed, and the button that helps in each state.
import { faults } from '../lib/axe.js';
import { Console } from '../lib/console.js';
import { expect, test } from '../lib/test.js';

/** The third iteration has an action that fails. */
const LOOP = `name: handled
inputs: { base: { type: string } }
variables: { n: 0 }
actions:
  poll:
    type: until
    condition: "@greaterOrEquals(variables('n'), 5)"
    limit: { count: 10, timeout: PT1H }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      fetch: { type: http, inputs: { uri: "@{inputs('base')}/part/@{variables('n')}" }, continue_on_error: true }
`;

const ITEMS = `name: some
inputs: { base: { type: string } }
actions:
  each:
    type: foreach
    foreach: "@range(1, 4)"
    on_error: continue
    actions:
      fetch: { type: http, inputs: { uri: "@{inputs('base')}/items/@{item()}" } }
`;

const FAILS = `name: fails
inputs: { base: { type: string } }
actions:
  fetch: { type: http, inputs: { uri: "@{inputs('base')}/items/3" } }
`;

test('a success with failures is another state than success, wherever it is shown', async ({ page, serve, world }) => {
  world.on('/part/', (_, path) => (path === '/part/3' ? { status: 404 } : { body: {} }));
  world.on('/items/', () => ({ body: {} }));
  const server = await serve();
  const input = { base: world.url };
  const run: string = (await server.post('/v1/runs', { text: LOOP, input })).run;
  const clean: string = (await server.post('/v1/runs', { text: ITEMS, input })).run;
  await Promise.all([server.result(run), server.result(clean)]);
  const console = new Console(page, server.url);
  await console.open('/runs');
  await expect(console.row(run)).toContainText('Succeeded with failures');
  await expect(console.row(run)).toContainText('1 action failed');
  await expect(console.row(run).locator('.fill-hold')).toHaveCount(1);
  await expect(console.row(clean)).not.toContainText('with failures');
  await console.facet('Succeeded with failures').click();
  await expect(console.rows).toHaveCount(1);
  expect(await faults(page)).toEqual([]);
  await console.row(run).getByRole('link').click();

  await expect(page.getByTestId('run-status')).toHaveText('Succeeded with failures');
  await expect(console.why).toContainText('1 action failed without failing the run.');
  await expect(console.counts).toContainText('1 succeeded with failures');
  expect(await console.totals()).toMatchObject({ succeeded: 4, succeeded_with_failures: 1, failed: 0, total: 5 });
  await console.field.fill('3');
  await console.field.press('Enter');
  await expect(console.node('poll')).toHaveAttribute('data-state', 'succeeded_with_failures');
  await expect(console.strip).toHaveAttribute('aria-valuetext', 'Iteration 3 of 5: succeeded with failures');
  await expect(page.getByTestId('iteration-line')).toContainText('Succeeded with failures');
  await expect(console.panel).toContainText('404');
  await console.field.fill('2');
  await console.field.press('Enter');
  await expect(page.getByTestId('iteration-line')).not.toContainText('with failures');
});

test('the one big button retries failed items, or from the action that failed', async ({ page, serve, world }) => {
  let broken = true;
  world.on('/items/', (_, path) => (path === '/items/3' && broken ? { status: 404 } : { body: {} }));
  const server = await serve();
  const input = { base: world.url };
  const some: string = (await server.post('/v1/runs', { text: ITEMS, input })).run;
  const fails: string = (await server.post('/v1/runs', { text: FAILS, input })).run;
  await Promise.all([server.result(some), server.result(fails)]);
  broken = false;
  const console = new Console(page, server.url);
  for (const [run, word] of [[some, 'Retry failed items'], [fails, 'Retry from failed']] as const) {
    await console.open(`/runs/${run}`);
    await page.getByRole('button', { name: word }).click();
    await expect(page).not.toHaveURL(new RegExp(`/runs/${run}$`));
    await expect(page.getByRole('link', { name: `retry of ${run}` })).toBeVisible();
    await expect(page.getByTestId('run-status')).toHaveText('Succeeded');
    await expect(page.getByRole('button', { name: word })).toHaveCount(0);
  }
  // A retry of several runs asks first.
  const total = async (): Promise<number> => (await server.get('/v1/runs')).total;
  const before = await total();
  await console.open('/runs?status=Failed');
  await console.listed();
  await page.getByRole('button', { name: /^Select all/ }).click();
  await page.getByTestId('bulk').getByRole('button', { name: 'Retry' }).click();
  await expect(page.getByRole('dialog')).toContainText('repeats its effects');
  expect(await total()).toBe(before);
  await page.getByRole('dialog').getByRole('button', { name: 'Retry 1 run' }).click();
  await expect.poll(total).toBe(before + 1);
});

/** 30 instances of a loop in another one. */
const NESTED = `name: nested
variables: { n: 0 }
actions:
  outer:
    type: until
    condition: "@greaterOrEquals(variables('n'), 30)"
    limit: { count: 100, timeout: PT1H }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      inner:
        type: until
        condition: "@equals(variables('loopIndex'), 1)"
        limit: { count: 2, timeout: PT1H }
        actions:
          tick: { type: compose, inputs: "@variables('n')" }
`;

test('of many loops one is searched for', async ({ page, serve }) => {
  const server = await serve();
  const run: string = (await server.post('/v1/runs', { text: NESTED })).run;
  await server.result(run);
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  const search = page.getByTestId('loop-search');
  await expect(search).toHaveValue('outer');
  await search.fill('Outer 17');
  await search.press('Enter');
  await expect(search).toHaveValue('outer 17 › inner');
  await expect(page).toHaveURL(/loop=outer%2316%2Finner/);
  await expect(console.panel).toContainText('17');
  await search.fill('nothing');
  await search.press('Enter');
  await expect(page.getByText('No loop is named nothing.')).toBeVisible();
  await expect(search).toHaveValue('outer 17 › inner');
  expect(await faults(page)).toEqual([]);
});

test('a run whose calls stubs answered has a label wherever it is shown', async ({ page, serve, world }) => {
  world.on('/items/', () => ({ body: {} }));
  const server = await serve();
  const input = { base: world.url };
  const tried: string = (await server.post('/v1/runs', { text: FAILS, input, stubs: { fetch: { statusCode: 200, body: {} } } })).run;
  const real: string = (await server.post('/v1/runs', { text: FAILS, input })).run;
  await Promise.all([server.result(tried), server.result(real)]);
  const console = new Console(page, server.url);
  await console.open('/runs');
  await expect(console.row(tried).getByText('stubs', { exact: true })).toBeVisible();
  await expect(console.row(tried)).toHaveCSS('font-style', 'italic');
  await expect(console.row(real).getByText('stubs', { exact: true })).toHaveCount(0);
  expect(await faults(page)).toEqual([]);
  await page.setViewportSize({ width: 390, height: 800 });
  await expect(console.row(tried).getByText('stubs', { exact: true })).toBeVisible();
  await console.row(tried).getByRole('link').click();
  await expect(page.getByTestId('run-status')).toBeVisible();
  await expect(page.locator('.run-head').getByText('stubs', { exact: true })).toBeVisible();
});
