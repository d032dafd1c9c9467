// A foreach: its items under way, how it ended, and the steps outside of it.
import { Console } from '../lib/console.js';
import { expect, test } from '../lib/test.js';
import { Gate } from '../lib/world.js';

test('items under way are lanes, and a step outside of loops has its inputs and outputs', async ({ page, serve, world }) => {
  const gate = new Gate();
  world.on('/before', () => ({ body: { said: 'hello' } }));
  world.on('/items/', async () => {
    await gate.opened;
    return { body: {} };
  });
  const server = await serve();
  const run = await server.run('items.yaml', { input: { base: world.url } });
  await world.called('/items/3', 1);
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.count('each')).toContainText('3 in flight');
  await expect(console.node('each').getByTestId('lane')).toHaveCount(3);
  const lanes = page.getByTestId('lane-row');
  await expect(lanes).toHaveCount(3);
  await expect(lanes.first()).toContainText(/item 1\s*fetch for/);
  await lanes.nth(1).getByRole('button').click();
  await console.at(2);

  await console.node('before').click();
  await console.tab('Data').click();
  const before = page.locator('[data-testid=action][data-action=before]');
  await expect(before).toContainText('/before');
  await expect(before).toContainText('hello');
  await expect(console.node('before')).toHaveAttribute('data-state', 'succeeded');

  gate.open();
  await expect(console.why).toContainText(/Succeeded/);
  await expect(lanes).toHaveCount(0);
  await expect(console.node('each')).toHaveAttribute('data-state', 'succeeded');
});

test('a foreach of which an item failed is no success', async ({ page, serve, world }) => {
  world.on('/before', () => ({ body: {} }));
  world.on('/items/', (_, path) => (path === '/items/3' ? { status: 404 } : { body: {} }));
  const server = await serve();
  const run = await server.run('items.yaml', { input: { base: world.url } });
  await server.result(run);
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.node('each')).toHaveAttribute('data-state', 'failed');
  await expect(console.why.getByText('each', { exact: true }).last()).toHaveRole('code');
  await expect(console.why).not.toContainText('`');
  await expect(console.node('before')).toHaveAttribute('data-state', 'succeeded');
});

test('failed items of a run that succeeded can be retried', async ({ page, serve, world }) => {
  let broken = true;
  world.on('/items/', (_, path) => (path === '/items/3' && broken ? { status: 404 } : { body: {} }));
  const server = await serve();
  const text = `name: some
inputs: { base: { type: string } }
actions:
  each:
    type: foreach
    foreach: "@range(1, 4)"
    on_error: continue
    actions:
      fetch: { type: http, inputs: { uri: "@{inputs('base')}/items/@{item()}" } }
`;
  const run: string = (await server.post('/v1/runs', { text, file: 'some.yaml', input: { base: world.url } })).run;
  await server.result(run);
  broken = false;
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await page.getByRole('toolbar', { name: 'Actions' }).getByRole('button', { name: 'Retry' }).click();
  await expect(page.getByLabel('From')).toHaveValue('failed-items');
  await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('log', { name: 'Messages' }).getByRole('link').click();
  await expect(console.why).toContainText(/Succeeded/);
  await expect(page).not.toHaveURL(new RegExp(`/runs/${run}$`));
});
