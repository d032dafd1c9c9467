// The runs of the last 24 hours as a chart, whose bars filter the list.
import { faults } from '../lib/axe.js';
import { Console } from '../lib/console.js';
import { many } from '../lib/many.js';
import { expect, test } from '../lib/test.js';

const TINY = 'name: tiny\nactions:\n  first: { type: compose, inputs: 1 }\n';

test('the last 24 hours are a chart, and a bar filters the list by its hour', async ({ page, serve, world }) => {
  await page.setViewportSize({ width: 1400, height: 800 });
  const server = await serve();
  await server.ask('PUT', '/v1/workflows/tiny', { text: TINY });
  await many(server, 6);
  world.on('/broken', () => ({ status: 404 }));
  await server.run('backoff.yaml', { run: 'broken', input: { base: world.url } });
  await server.result('broken');
  await server.run('approval.yaml', { run: 'asks' });
  await server.run('approval.yaml', { run: 'stops' });
  await server.post('/v1/runs/stops/cancel');
  await server.result('stops');

  const console = new Console(page, server.url);
  await console.open();
  await console.listed();
  const day = page.getByTestId('day');
  await expect(day.getByRole('button')).toHaveCount(24);
  // They all began in this hour or, at its very end, in this one and the next.
  const bars = day.getByRole('button').filter({ has: page.locator('[data-kind]') });
  const names = await bars.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')!));
  const sum = (word: string): number => names.reduce((all, name) => all + Number(new RegExp(`(\\d+) ${word}`).exec(name)?.[1] ?? 0), 0);
  expect([sum('run'), sum('succeeded'), sum('failed'), sum('active')]).toEqual([9, 6, 2, 1]);
  expect(await faults(page)).toEqual([]);

  // An hour without runs, and the chart stays.
  const empty = day.getByRole('button', { name: /: 0 runs$/ }).first();
  await empty.click();
  await expect(page).toHaveURL(/since=.*until=/);
  await expect(page.getByText('No runs match these filters.')).toBeVisible();
  await expect(empty).toHaveAttribute('aria-pressed', 'true');
  await expect(page.getByLabel('Started').locator('option:checked')).toHaveText(/^\d\d:00 to \d\d:00$/);
  await page.reload();
  await expect(empty).toHaveAttribute('aria-pressed', 'true');
  await expect(page.getByText('No runs match these filters.')).toBeVisible();

  const full = bars.first();
  const runs = /: (\d+) run/.exec(names[0]!)![1]!;
  await full.click();
  await expect(page.getByTestId('total')).toHaveText(new RegExp(`^${runs} runs?$`));
  // A bar that is chosen is left by a second click; the facets of the chart follow the other filters.
  await full.click();
  await expect(page.getByTestId('total')).toHaveText('9 runs');
  await console.facet('Failed').click();
  await expect(console.rows).toHaveCount(1);
  await expect(day.locator('[data-kind]')).toHaveCount(1);
  await expect(day.locator('[data-kind=bad]')).toHaveCount(1);
});
