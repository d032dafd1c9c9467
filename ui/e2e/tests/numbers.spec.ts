// Integers that a number of JavaScript does not hold: forms, panels and views keep all of their digits.
import { Console } from '../lib/console.js';
import { Editor } from '../lib/editor.js';
import { expect, test } from '../lib/test.js';

/** 2^53 + 1, and one below. A number of JavaScript holds only the second. */
const [BIG, NEAR] = ['9007199254740993', '9007199254740992'];

const TEXT = `name: exact
inputs:
  one: { type: integer, default: ${BIG} }
  two: { type: integer }
state: { seen: 1 }
actions:
  ask:
    type: waitForSignal
    schema: { properties: { three: { type: integer } }, required: [three] }
  keep: { type: setState, name: seen, value: "@inputs('one')" }
  twice:
    type: until
    condition: "@equals(variables('loopIndex'), 2)"
    limit: { count: 2, timeout: PT1H }
    actions:
      sum: { type: compose, inputs: { same: "@inputs('one')", next: "@add(${NEAR}, variables('loopIndex'))" } }
outputs: { text: "@{inputs('one')} @{inputs('two')} @{outputs('ask').three}" }
`;

test('integers keep all digits in forms, values and differences', async ({ page, serve }) => {
  const server = await serve();
  await server.ask('PUT', '/v1/workflows/exact', { text: TEXT });
  const console = new Console(page, server.url);
  await console.open('/workflows/exact');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(page.getByLabel('one (optional)')).toHaveAttribute('placeholder', BIG);
  await page.getByLabel('two').fill('12345678901234567');
  await page.getByLabel('Id (optional)').fill('first');
  await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click();
  await page.getByTestId('question').getByLabel('three (required)').fill(BIG);
  await page.getByTestId('question').getByRole('button', { name: 'Answer' }).click();
  await expect(console.why).toContainText(/Succeeded/);
  expect((await server.result('first')).output.text).toBe(`${BIG} 12345678901234567 ${BIG}`);

  // The variables of the run itself are not shown.
  expect(Object.keys((await server.get('/v1/runs/first/iteration')).variables).filter((name) => name.startsWith('_'))).toEqual([]);

  await console.open('/runs/first?loop=twice&it=2&vs=previous');
  await expect(page.getByTestId('action').filter({ hasText: 'sum' })).toContainText(BIG);
  await expect(page.getByTestId('difference').getByRole('row').filter({ hasText: 'next' })).toContainText(`next${NEAR}${BIG}`);
  await expect(page.getByTestId('difference').getByRole('row').filter({ hasText: 'same' })).toHaveCount(0);
  await console.open('/workflows/exact');
  await expect(page.getByTestId('state-value')).toContainText(BIG);
});

test('a panel writes integers with all digits', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  const text = `name: sends\nactions:\n  send:\n    type: http\n    inputs: { method: POST, uri: "http://127.0.0.1/", body: { id: ${BIG}, name: old } }\n`;
  await editor.open();
  await editor.write(text);
  await editor.right();
  await editor.node('send').click();
  const body = editor.panel.getByLabel(/^body/i).first();
  await expect(body).toHaveValue(new RegExp(BIG));
  await body.fill((await body.inputValue()).replace('old', 'new'));
  await body.blur();
  await expect.poll(() => editor.whole()).toMatch(/new/);
  expect(await editor.whole()).toContain(`id: ${BIG}`);
});
