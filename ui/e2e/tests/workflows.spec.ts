// Saved workflows: the list, versions and how they differ, the schedule, and a run of one.
import { faults } from '../lib/axe.js';
import { Console } from '../lib/console.js';
import { expect, test } from '../lib/test.js';

const TEXT = `name: greeting
schedule: "30 2 * * *"
inputs:
  who: { type: string, default: world, description: Who is greeted. }
  times: { type: integer, default: 2 }
  loud: { type: boolean, default: true }
actions:
  hello:
    type: compose
    inputs: "hello @{inputs('who')}, @{inputs('times')} times"
`;

test('versions differ, times are shown, and a run is started with a form', async ({ page, serve }) => {
  const server = await serve();
  for (const text of [TEXT, TEXT.replace('"hello', '"good day')]) await server.ask('PUT', '/v1/workflows/greeting', { text });
  const console = new Console(page, server.url);
  await console.open('/workflows');
  const row = page.locator('[data-workflow=greeting]');
  await expect(row).toContainText('loom');
  await expect(row).toContainText(/02:30|2:30|04:30|0\d:30/);
  expect(await faults(page)).toEqual([]);
  await row.getByRole('link', { name: 'greeting' }).click();
  await expect(page.getByTestId('next-start')).toHaveCount(5);
  await expect(page.getByTestId('version')).toHaveCount(2);
  const difference = page.getByTestId('difference');
  await expect(difference.locator('.gone')).toContainText('hello @{inputs');
  await expect(difference.locator('.come')).toContainText('good day');
  expect(await faults(page)).toEqual([]);

  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(page.getByRole('dialog')).toContainText('Who is greeted.');
  await page.getByLabel('who (optional)').fill('ann');
  await page.getByLabel('times (optional)').fill('3');
  await expect(page.getByLabel('loud (optional)')).toBeChecked();
  await page.getByLabel('Id (optional)').fill('first');
  await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click();
  await expect(console.why).toContainText(/Succeeded/);
  expect((await server.result('first')).output).toEqual({ hello: 'good day ann, 3 times' });

  await console.open('/workflows/greeting');
  await expect(page.getByTestId('version').first()).toContainText('1 succeeded');
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await expect(page).toHaveURL(/\/ui\/edit\?workflow=greeting/);
  await page.goBack();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('No workflows yet.')).toBeVisible();
});

const NIGHTLY = `name: nightly
schedule: "30 2 * * *"
state: { since: "2026-01-01" }
actions:
  keep: { type: setState, name: since, value: "2026-02-03" }
`;

test('a schedule is paused and resumed, and the values between runs are shown', async ({ page, serve }) => {
  const server = await serve();
  await server.ask('PUT', '/v1/workflows/nightly', { text: NIGHTLY });
  await server.ask('PUT', '/v1/workflows/greeting', { text: TEXT.replace(/schedule:.*\n/, '') });
  await server.post('/v1/runs', { workflow: 'nightly', run: 'first' });
  await server.result('first');
  const console = new Console(page, server.url);
  await console.open('/workflows');
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Schedules' }).click();
  const row = page.locator('[data-schedule=nightly]');
  await expect(row).toContainText('30 2 * * *');
  await expect(page.locator('[data-schedule]')).toHaveCount(1);
  await row.getByRole('button', { name: 'Pause the schedule of nightly' }).click();
  await expect(row).toContainText(/paused since/);
  await expect(row.getByRole('cell').nth(2)).toHaveText('none');
  expect((await server.get('/v1/workflows/nightly/schedule')).paused_since).toBeTruthy();
  expect(await faults(page)).toEqual([]);
  await row.getByRole('link', { name: 'nightly' }).click();
  await expect(page.getByTestId('next-start')).toHaveCount(0);
  await page.getByRole('button', { name: 'Resume the schedule of nightly' }).click();
  await expect(page.getByTestId('next-start')).toHaveCount(5);
  const value = page.getByTestId('state-value');
  await expect(value).toContainText('since');
  await expect(value).toContainText('2026-02-03');
  expect(await faults(page)).toEqual([]);
  await value.getByRole('link', { name: 'first' }).click();
  await expect(console.why).toContainText('Succeeded');
});
