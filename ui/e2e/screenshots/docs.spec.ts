// The pictures of docs/reference/console.md.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Console } from '../lib/console.js';
import { Editor } from '../lib/editor.js';
import { fails, PAGES, range } from '../lib/gallery.js';
import { HERE } from '../lib/server.js';
import { expect, test, type Page } from '../lib/test.js';
import { Gate } from '../lib/world.js';

async function picture(page: Page, name: string): Promise<void> {
  await expect(page.getByTestId('server-state')).toHaveText('Connected');
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: join(resolve(HERE, '../../docs/console'), `${name}.png`), animations: 'disabled', caret: 'initial' });
}

for (const colorScheme of ['light', 'dark'] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme });

    test('a live polling loop', async ({ page, serve, world }) => {
      const gate = new Gate();
      world.on('/jobs/', async (n) => {
        if (n > 417) await gate.opened;
        return { body: { status: 'running', progress: Math.floor(n / 10) } };
      });
      const server = await serve();
      const run = await server.run('poll.yaml', { run: 'nightly', input: { base: world.url, job: 'nightly', count: 1000 }, labels: { team: 'core' } });
      await world.called('/jobs/nightly', 418);
      const console = new Console(page, server.url);
      await console.open(`/runs/${run}`);
      await expect(console.count('poll')).toHaveText('↻ 418/1,000');
      await page.keyboard.press('[');
      await expect(console.action('check')).toContainText('progress');
      await picture(page, `polling-${colorScheme}`);
      gate.open();
    });

    test('a failed page loop of 10,000', async ({ page, gallery }) => {
      const console = new Console(page, gallery.url);
      const failed = range(PAGES).filter(fails)[4];
      await console.open(`/runs/${gallery.pages}?loop=pages&it=${failed}`);
      await console.at(failed);
      await expect(console.action('fetch')).toContainText('2 attempts');
      await page.locator('summary', { hasText: 'of failure' }).click();
      await picture(page, `pages-${colorScheme}`);
    });

    test('the review loop of a canvas in the editor', async ({ page, gallery }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      const editor = new Editor(page, gallery.url);
      await editor.open();
      await editor.write(readFileSync(join(HERE, '../../examples/canvas/code-review.yaml'), 'utf8'));
      await editor.right();
      await editor.node('review-loop').click({ position: { x: 40, y: 14 } });
      await expect(editor.field('max_iterations')).toBeVisible();
      await picture(page, `editor-${colorScheme}`);
    });

    test('a nested loop drilled three levels', async ({ page, gallery }) => {
      const console = new Console(page, gallery.url);
      await console.open(`/runs/${gallery.nested}`);
      for (const path of ['outer', 'outer/middle', 'outer/middle/inner']) {
        await console.walk(path);
        await page.keyboard.press('Enter');
      }
      const place = new URL(page.url());
      place.searchParams.set('loop', 'outer#1/middle#2/inner');
      place.searchParams.set('it', '5');
      await page.goto(place.href);
      await expect(console.crumbs).toContainText('inner 5');
      await expect(console.node('outer/middle/inner/call')).toHaveAttribute('data-state', 'succeeded');
      await picture(page, `nested-${colorScheme}`);
    });
  });
}
