// A first workflow: empty lists lead to the editor, which offers texts to begin with.
import { faults } from '../lib/axe.js';
import { Console } from '../lib/console.js';
import { Editor } from '../lib/editor.js';
import { expect, test } from '../lib/test.js';

test('empty lists lead to the editor, and every starter validates', async ({ page, serve }) => {
  const server = await serve();
  const console = new Console(page, server.url);
  const editor = new Editor(page, server.url);
  for (const list of ['/runs', '/workflows']) {
    await console.open(list);
    await expect(page.getByTestId('none-yet')).toContainText(/No (runs|workflows) yet/);
    expect(await faults(page)).toEqual([]);
    await page.getByTestId('none-yet').getByRole('link', { name: 'New workflow' }).click();
    await expect(page).toHaveURL(/\/ui\/edit$/);
    await expect(editor.text).toBeVisible();
  }
  const begin = page.getByTestId('begin');
  expect(await faults(page)).toEqual([]);
  for (const [name, type] of [['poll', 'until'], ['pages', 'doUntil'], ['agent', 'ai'], ['approval', 'waitForSignal']]) {
    // Another page load: another new workflow.
    await editor.open();
    await begin.getByRole('button', { name: new RegExp(`^${name}`) }).click();
    await editor.right();
    await expect(begin).toHaveCount(0);
    const text = await editor.whole();
    expect(text).toContain(`name: ${name}`);
    expect(text).toContain(`type: ${type}`);
    expect(text.split('\n').length).toBeLessThan(40);
    page.once('dialog', (dialog) => void dialog.accept());
  }
  // The last one runs, and asks.
  await server.post('/v1/runs', { text: await editor.whole(), run: 'first' });
  await console.open('/runs/first');
  await expect(page.getByRole('button', { name: 'approve' })).toBeVisible();
});
