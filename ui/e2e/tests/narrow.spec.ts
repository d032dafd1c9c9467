// On a phone: nothing scrolls sideways, and nothing covers what one presses.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Console } from '../lib/console.js';
import { HERE } from '../lib/server.js';
import { expect, test, type Page } from '../lib/test.js';

/** What is wrong with the layout of a page. */
async function wrong(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.push(`the page is ${wide} px wide`);
    const main = document.querySelector('main')!;
    if (main.scrollWidth > main.clientWidth) found.push(`its content is ${main.scrollWidth} px wide`);
    for (const one of document.querySelectorAll<HTMLElement>('button, a.button, select, input, [role=tab]')) {
      if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      one.scrollIntoView({ block: 'center', inline: 'center' });
      const box = one.getBoundingClientRect();
      if (box.width < 2 || box.height < 2) continue;
      const name = one.getAttribute('aria-label') ?? one.textContent?.trim() ?? one.outerHTML;
      if (box.left < -0.5 || box.right > innerWidth + 0.5) found.push(`${name}: from ${box.left} to ${box.right}`);
      const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      if (!there || (!one.contains(there) && !there.closest('label')?.contains(one))) found.push(`${name}: under ${there?.outerHTML.slice(0, 120)}`);
    }
    return found;
  });
}

test('at 390 px nothing scrolls sideways, and no button is covered', async ({ page, serve, world }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const server = await serve();
  const keep = (name: string, text: string) => server.ask('PUT', `/v1/workflows/${name}`, { text });
  const poll = readFileSync(join(HERE, 'workflows', 'poll.yaml'), 'utf8');
  await keep('poll', poll);
  await keep('a-workflow-with-quite-a-long-name-for-a-narrow-page', `schedule: "30 2 * * *"\nstate: { since: "2026-01-01" }\n${readFileSync(join(HERE, 'workflows', 'release.yaml'), 'utf8').replace(/^#.*\n/, '')}`);
  world.on('/jobs/', () => ({ body: { status: 'running' } }));
  await server.run('poll.yaml', { run: 'polls-for-a-job-that-has-a-long-name', input: { base: world.url, delay: 'PT1H' } });
  await server.run('release.yaml', { run: 'asks' });
  await server.run('nested.yaml', { run: 'nested', input: { base: world.url } });
  await world.called('/jobs/export', 1);
  await server.result('nested');
  const console = new Console(page, server.url);
  const found: Record<string, string[]> = {};
  const look = async (name: string): Promise<void> => {
    const here = await wrong(page);
    if (here.length > 0) found[name] = here;
  };

  await console.open('/runs');
  await console.listed();
  await expect(page.getByTestId('day')).toBeVisible();
  await look('runs');
  await page.getByText('Filters').click();
  await look('filters');
  await page.getByText('Filters').click();
  await page.getByRole('button', { name: /^Select all/ }).click();
  await expect(page.getByTestId('bulk')).toBeVisible();
  await look('chosen runs');
  for (const run of ['polls-for-a-job-that-has-a-long-name', 'asks', 'nested']) {
    await console.open(`/runs/${run}`);
    await expect(console.why).not.toBeEmpty();
    for (const tab of ['Data', 'Timeline', 'Source', 'History']) {
      await console.tab(tab).click();
      await console.shown();
      await look(`${run}, ${tab}`);
    }
  }
  await console.open('/workflows');
  await expect(page.locator('[data-workflow]')).toHaveCount(2);
  await look('workflows');
  await page.locator('[data-workflow]').getByRole('link').first().click();
  await expect(page.getByTestId('version')).toHaveCount(1);
  await expect(page.getByTestId('next-start')).toHaveCount(5);
  await look('workflow');
  await console.open('/schedules');
  await expect(page.locator('[data-schedule]')).toHaveCount(1);
  await look('schedules');
  for (const query of ['', '?workflow=poll']) {
    await console.open(`/edit${query}`);
    await expect(page.getByTestId('editor')).toBeVisible();
    await expect(page.getByRole('textbox', { name: 'Text of the workflow' })).toBeVisible();
    for (const part of ['Text', 'Graph', 'Panel']) {
      await page.getByRole('group', { name: 'Part' }).getByRole('button', { name: part }).click();
      await look(`editor${query}, ${part}`);
    }
  }
  expect(found).toEqual({});
});
