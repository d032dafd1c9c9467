// 17: one line says why a run is where it is.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Console } from '../lib/console.js';
import { expect, test } from '../lib/test.js';
import { Gate } from '../lib/world.js';

test('17: a delay, with the condition and its values', async ({ page, serve, world }) => {
  world.on('/jobs/', () => ({ body: { status: 'running' } }));
  const server = await serve();
  const run = await server.run('poll.yaml', { input: { base: world.url, count: 10_000, delay: 'PT10M' } });
  await server.when(run, (status) => status.doing[0]?.waits_for === 'delay');
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/Waiting (10 min|9 min \d+ s) for the next check of poll/);
  await expect(console.why).toContainText(/of 10,000/);
  await expect(console.why).toContainText(/"running"/);
  await expect(console.why).toContainText(/done/);
  await expect(console.why).toContainText(/deadline in (1 h|59 min)/);
  // The loop does not last longer than until its deadline.
  await expect(page.getByRole('region', { name: 'Iterations' })).toContainText(/59 min( \d+ s)? left at most/);
});

test('17: a wait between two attempts, with the error of the last one', async ({ page, serve, world }) => {
  const server = await serve();
  const run = await server.run('backoff.yaml', { input: { base: world.url } });
  await server.when(run, (status) => status.doing[0]?.waits_for === 'retry');
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/Waiting (1 h|59 min).* before attempt 2 of 4 of call/);
  await expect(console.why).toContainText(/500/);
  // Without a loop, the timeline has the actions.
  await console.tab('Timeline').click();
  const timeline = page.getByRole('list', { name: 'Timeline' });
  await expect(timeline.getByRole('listitem').first()).toContainText('call');
  await expect(console.panel).not.toContainText(/iteration/);
});

test('17: a signal, which the form sends', async ({ page, serve }) => {
  const server = await serve();
  const run = await server.run('approval.yaml');
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/Waiting at wait_for_approval for the signal approved/);
  await page.getByRole('button', { name: 'Signal' }).click();
  await page.getByLabel('Payload').fill('{"by": "ann"}');
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(console.why).toContainText(/Succeeded/);
  expect((await server.result(run)).output).toEqual({ who: { by: 'ann' } });
});

test('17: a question, with its form, its choices and its deadline', async ({ page, serve }) => {
  const server = await serve();
  const run = await server.run('release.yaml');
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/Waiting at ask for an answer/);
  const question = page.getByTestId('question');
  await expect(question.getByRole('heading')).toHaveText('Deploy <1.4> to production?');
  await expect(question).toContainText(/waiting since .*, for .*; the deadline is .*, in (3 d|2 d 23 h)/);
  // What is typed stays while reports arrive, and a wrong value is refused with the reason.
  await question.getByLabel('Ticket (required)').fill('1.');
  await question.getByRole('button', { name: 'approve' }).click();
  await expect(question.getByRole('alert')).toHaveText('Ticket: enter an integer');
  await question.getByLabel('Ticket (required)').fill('42');
  await question.getByLabel('urgent').selectOption('true');
  await question.getByRole('button', { name: 'reject' }).click();
  await expect(console.why).toContainText(/Succeeded/);
  await expect(question).toHaveCount(0);
  const { answer } = (await server.result(run)).output as { answer: Record<string, unknown> };
  expect(answer).toMatchObject({ choice: 'reject', ticket: 42, urgent: true });
  expect(answer.answeredBy).toBeTruthy();
});

test('17: a loop that has used its tokens, with both budgets', async ({ page, serve }) => {
  const server = await serve();
  const run = await server.run('budget.yaml');
  await server.when(run, (status) => status.status === 'Paused');
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/work reached its limit of tokens/);
  await expect(console.why).toContainText(/tokens 12,300 of 12,000; cost 1 of 2.5/);
  await expect(page.getByTestId('budget')).toHaveText(['tokens 12,300 of 12,000', 'cost 1 of 2.5']);
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByTestId('budget').first()).toHaveText('tokens 24,600 of 24,300');
});

test('17: a pause, by key and by button', async ({ page, serve }) => {
  const server = await serve();
  const run = await server.run('approval.yaml');
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/signal/);
  await page.keyboard.press('p');
  await expect(console.why).toContainText(/Paused since .* by a user/);
  await expect(page.getByRole('button', { name: 'Pause' })).toHaveCount(0);
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(console.why).toContainText(/Waiting at wait_for_approval/);
});

test('17: the limit on calls', async ({ page, serve, world }) => {
  const gate = new Gate();
  world.on('/jobs/', async () => {
    await gate.opened;
    return { body: { status: 'done' } };
  });
  const server = await serve({ args: ['--max-effects', '1'] });
  const first = await server.run('poll.yaml', { input: { base: world.url } });
  await world.called('/jobs/export', 1);
  const second = await server.run('poll.yaml', { input: { base: world.url, job: 'second' } });
  const console = new Console(page, server.url);
  await console.open(`/runs/${second}`);
  await expect(console.why).toContainText(/Waiting at check until the limit on calls allows it to start/);
  gate.open();
  await expect(console.why).toContainText(/Succeeded/);
  await server.result(first);
});

test('17: a disk that takes no more', async ({ page, serve, world }) => {
  const gate = new Gate();
  world.on('/jobs/', async (n) => {
    if (n === 2) await gate.opened;
    // Each answer is stored, so the store must grow.
    return { body: { status: n > 20 ? 'done' : 'running', text: randomBytes(100_000).toString('base64') } };
  });
  const server = await serve();
  const run = await server.run('poll.yaml', { input: { base: world.url, count: 500 } });
  await world.called('/jobs/export', 2);
  const console = new Console(page, server.url);
  await console.open(`/runs/${run}`);
  await expect(console.why).toContainText(/Running check/);
  // No file may grow beyond this, as on a full disk.
  const limit = (bytes: string): void => void execFileSync('prlimit', [`--pid=${server.pid}`, `--fsize=${bytes}:unlimited`]);
  limit(String(statSync(join(server.dir, 'state/store/db')).size + 300_000));
  gate.open();
  await expect(console.state).toContainText(/disk full/i);
  await expect(console.why).toContainText(/Stopped/);
  limit('unlimited');
  await expect(console.why).toContainText(/Succeeded/, { timeout: 30_000 });
  await expect(console.state).toContainText(/connected/i);
});

test('17: a turn and a child, with links to the runs that are waited for', async ({ page, serve }) => {
  const server = await serve();
  const queued = 'name: queued\nconcurrency: queue\nactions:\n  wait: { type: waitForSignal, inputs: { signal: go } }\n';
  for (const run of ['one', 'two']) await server.post('/v1/runs', { text: queued, run });
  const console = new Console(page, server.url);
  await console.open('/runs/two');
  await expect(console.why).toContainText('Waiting for the run one with the same concurrency key');
  await console.why.getByRole('link', { name: 'one' }).click();
  await expect(page.getByRole('heading', { name: 'one' })).toBeVisible();

  await server.ask('PUT', '/v1/workflows/inner', { text: queued.replace('concurrency: queue\n', '') });
  await server.post('/v1/runs', { text: 'actions:\n  call: { type: workflow, workflow: inner }\n', run: 'outer' });
  await console.open('/runs/outer');
  await console.why.getByRole('link').click();
  await expect(page.getByRole('link', { name: 'started by outer' })).toBeVisible();
});
