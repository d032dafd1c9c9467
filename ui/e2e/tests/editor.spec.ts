// 24: the editor: the text, its graph and its panel are one.
import { faults, LOOKS } from '../lib/axe.js';
import { Editor } from '../lib/editor.js';
import { measure } from '../lib/figures.js';
import { expect, test } from '../lib/test.js';

const POLL = `# what this is for
name: poll
variables: { status: pending }
actions:
  wait:   # the loop
    type: until
    condition: "@equals(variables('status'), 'done')"
    limit: { count: 5, timeout: PT1M }
    actions:
      look:
        type: setVariable
        name: status
        value: done
`;

test('24: a mistake is shown at its line, and the last right graph stays', { tag: '@timing' }, async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(POLL);
  await editor.right();
  await expect(editor.node('wait')).toBeVisible();
  // A word that is no key, at the end of line 9.
  await editor.text.focus();
  await page.keyboard.press('Control+Home');
  for (let n = 0; n < 7; n += 1) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.keyboard.type('delai: PT1S');
  const since = Date.now();
  await expect(editor.problems.first()).toContainText('delai');
  measure('editor: a mistake is shown after', Date.now() - since, 500);
  await expect(editor.problems.first()).toContainText('9');
  await expect(page.locator('.cm-lintRange-error')).toHaveCount(1);
  await expect(page.getByTestId('stale')).toBeVisible();
  await expect(editor.node('wait')).toHaveAttribute('aria-label', /a problem is here/);
  // F8 goes there; the fix mends it.
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('F8');
  await page.keyboard.press('Control+.');
  await editor.right();
  expect(await editor.whole()).toContain('    delay: PT1S');
  await expect(page.getByTestId('stale')).toHaveCount(0);
});

test('24: the cursor and the chosen node are one', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(POLL);
  await editor.right();
  await editor.node('wait/look').click();
  await expect(page.locator('.cm-activeLine')).toContainText('look:');
  await editor.text.focus();
  await page.keyboard.press('Control+Home');
  for (let n = 0; n < 5; n += 1) await page.keyboard.press('ArrowDown');
  await expect(editor.node('wait')).toHaveAttribute('aria-selected', 'true');
});

test('24: a concurrent change of a further file is shown, and not reverted', async ({ page, serve }) => {
  const server = await serve();
  const main = 'name: multi\nactions:\n  sub: { type: workflow, workflow: child.yaml, timeout: 1h }\n';
  const child = (text: string): string => `name: child\nactions:\n  c: { type: compose, inputs: "${text}" }\n`;
  const put = async (files: { path: string; text: string }[]): Promise<void> => {
    expect((await server.ask('PUT', '/v1/workflows/multi', { text: main, file: 'multi.yaml', files })).status).toBeLessThan(300);
  };
  const stored = async (): Promise<Record<string, string>> =>
    Object.fromEntries((await server.get('/v1/workflows/multi')).files.map((file: { path: string; text: string }) => [file.path, file.text]));
  const save = async (text: string): Promise<void> => {
    await editor.write(text);
    await editor.right();
    await page.keyboard.press('Control+s');
    await editor.dialog.getByRole('button', { name: 'Save' }).click();
  };
  await put([{ path: 'child.yaml', text: child('one') }]);
  const editor = new Editor(page, server.url);
  await editor.open('?workflow=multi');
  await editor.right();
  await put([{ path: 'child.yaml', text: child('two') }]);
  await save(`${main}# mine\n`);
  await expect(page.getByTestId('conflict-file')).toHaveText(['multi.yaml', 'child.yaml']);
  const parts = page.getByTestId('differs');
  await expect(parts).toHaveCount(2);
  await expect(parts.nth(1)).toContainText('two');
  await expect(parts.nth(1).getByRole('radio', { name: 'Theirs' })).toBeChecked();
  expect(await faults(page)).toEqual([]);
  await editor.button('Save this').click();
  await expect(editor.dialog).toHaveCount(0);
  expect(await stored()).toEqual({ 'multi.yaml': `${main}# mine\n`, 'child.yaml': child('two') });
  // The next save sends the merged file, and a choice of the own text is followed.
  await put([{ path: 'child.yaml', text: child('three') }]);
  await save(`${main}# ours\n`);
  await parts.filter({ hasText: 'three' }).getByRole('radio', { name: 'Yours' }).check();
  await editor.button('Save this').click();
  await expect(editor.dialog).toHaveCount(0);
  expect(await stored()).toEqual({ 'multi.yaml': `${main}# ours\n`, 'child.yaml': child('two') });
});

test('24: a concurrent change is shown side by side, and merged by hand', async ({ page, serve }) => {
  const server = await serve();
  const put = (text: string, headers = {}): Promise<unknown> => server.ask('PUT', '/v1/workflows/poll', { text }, headers);
  await put(POLL);
  const editor = new Editor(page, server.url);
  await editor.open('?workflow=poll');
  await editor.right();
  expect(await editor.whole()).toBe(POLL);
  await editor.write(POLL.replace('# what this is for', '# mine'));
  await editor.right();
  // Who leaves loses nothing.
  await page.getByRole('link', { name: 'Runs', exact: true }).click();
  await expect(editor.text).toHaveCount(0);
  await page.goBack();
  await expect(editor.text).toBeVisible();
  expect(await editor.whole()).toContain('# mine');
  await put(POLL.replace('PT1M', 'PT2M'));
  await editor.text.focus();
  await page.keyboard.press('Control+s');
  await editor.dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByTestId('conflict')).toContainText('# what this is for');
  const parts = page.getByTestId('differs');
  await expect(parts).toHaveCount(2);
  await expect(parts.nth(1)).toContainText('PT2M');
  expect((await server.get('/v1/workflows/poll')).files[0].text).toBe(POLL.replace('PT1M', 'PT2M'));
  // What only the other user changed is theirs at first.
  await expect(parts.nth(0).getByRole('radio', { name: 'Yours' })).toBeChecked();
  await expect(parts.nth(1).getByRole('radio', { name: 'Theirs' })).toBeChecked();
  expect(await faults(page)).toEqual([]);
  await editor.button('Save this').click();
  await expect(editor.dialog).toHaveCount(0);
  const merged = POLL.replace('PT1M', 'PT2M').replace('# what this is for', '# mine');
  expect((await server.get('/v1/workflows/poll')).files[0].text).toBe(merged);
  expect(await editor.whole()).toBe(merged);
  // A change after that is saved without a question.
  await editor.write(merged.replace('# mine', '# ours'));
  await editor.right();
  await page.keyboard.press('Control+s');
  await editor.dialog.getByRole('button', { name: 'Save' }).click();
  await expect(editor.dialog).toHaveCount(0);
  expect((await server.get('/v1/workflows/poll')).files[0].text).toContain('# ours');
  // Of a workflow that was deleted meanwhile, the text is saved as a new one.
  await server.ask('DELETE', '/v1/workflows/poll');
  await editor.write(POLL.replace('# what this is for', '# again'));
  await editor.right();
  await page.keyboard.press('Control+s');
  await editor.dialog.getByRole('button', { name: 'Save' }).click();
  await expect(editor.dialog.getByRole('alert')).toHaveText('poll was deleted meanwhile. Save it as a new workflow?');
  await editor.dialog.getByRole('button', { name: 'Save as new' }).click();
  await expect(editor.dialog).toHaveCount(0);
  expect((await server.get('/v1/workflows/poll')).files[0].text).toContain('# again');
});

for (const look of LOOKS) {
  test.describe(look.name, () => {
    test.use(look.use);
    test(`25: axe finds nothing in the editor in ${look.name}`, async ({ page, gallery }) => {
      const editor = new Editor(page, gallery.url);
      const found: Record<string, string[]> = {};
      const narrow = look.name === '320 px wide';
      const look_at = async (name: string): Promise<void> => {
        const here = await faults(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        if (narrow && wide > 320) here.push(`the page is ${wide} px wide`);
        if (here.length > 0) found[name] = here;
      };
      await editor.open();
      await look_at('empty');
      await editor.write(POLL);
      await editor.right();
      await look_at('right');
      await editor.write(POLL.replace('count: 5', 'cuont: 5'));
      await expect(editor.problems.first()).toBeVisible();
      await look_at('wrong');
      await editor.text.focus();
      await page.keyboard.press('Control+f');
      await look_at('search');
      await page.keyboard.press('Escape');
      await editor.write(POLL);
      await editor.right();
      if (narrow) await page.getByRole('button', { name: 'Graph', exact: true }).click();
      await editor.node('wait').click({ position: { x: 30, y: 12 } });
      await look_at('graph');
      if (narrow) await page.getByRole('button', { name: 'Panel', exact: true }).click();
      await look_at('panel');
      for (const name of ['Save', 'Run']) {
        await page.getByRole('button', { name, exact: true }).click();
        await expect(editor.dialog).toBeVisible();
        await look_at(name);
        await page.keyboard.press('Escape');
      }
      expect(found).toEqual({});
    });
  });
}

test('a save that gets no answer does not claim to be repeated', async ({ page, serve }) => {
  const server = await serve();
  await server.ask('PUT', '/v1/workflows/poll', { text: POLL });
  const editor = new Editor(page, server.url);
  await editor.open('?workflow=poll');
  await editor.write(`${POLL}# mine\n`);
  await editor.right();
  await page.route('**/v1/workflows/poll', (route) => route.abort());
  await page.keyboard.press('Control+s');
  await editor.dialog.getByRole('button', { name: 'Save' }).click();
  await expect(editor.dialog.getByRole('alert')).toHaveText('The server does not answer. It is unknown whether the command was carried out: check before you repeat it.');
});
