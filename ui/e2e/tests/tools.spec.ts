// 24: what the editor helps with: completions, values of past iterations, edits of the text, trials.
import { Editor } from '../lib/editor.js';
import { expect, test } from '../lib/test.js';

const POLL = `# what this is for
name: poll
inputs: { base: { type: string } }
variables: { seen: 0 }
actions:
  poll:   # until enough were seen
    type: until
    condition: "@greater(variables('seen'), 30)"
    limit: { count: 50 }  # plenty
    actions:
      count:
        type: incrementVariable
        name: seen
        value: 3
`;

const CANVAS = `name: two
dialect: canvas
nodes:
  - id: first
    type: function
    data: { code: "return { a = 1 }", outputs: [{ name: a, type: number }] }
  - id: second
    type: function
    data: { code: "return { b = inputs.a }", inputs: [{ name: a, type: number }], outputs: [{ name: b, type: number }] }
edges:
  - { source: first, target: second, sourceHandle: "output:a", targetHandle: "input:a" }
`;

const LOOP = `name: two
dialect: canvas
nodes:
  - id: again
    type: loop
    data:
      maxIterations: 2
      continueWhile: { output: step.a, operator: "==", value: 1 }
      inlineWorkflow:
        nodes: [{ id: step, type: function, data: { code: "return { a = 1 }", outputs: [{ name: a, type: number }] } }]
        edges: []
edges: []
`;

const AZURE = `definition:
  triggers: {}
  actions:
    note: { type: Compose, inputs: 1 }
`;

async function ended(editor: Editor, run: string, text: string): Promise<void> {
  const { page, url } = editor;
  await page.request.post(`${url}/v1/runs`, { data: { run, text, input: { base: 'x' } } });
  await expect.poll(async () => (await (await page.request.get(`${url}/v1/runs/${run}`)).json()).status).toBe('Succeeded');
}

test('24: completions come from the format and from what is in scope', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(`${POLL.slice(0, POLL.indexOf("iables('seen')"))}`);
  await page.keyboard.press('Control+Space');
  const offers = page.locator('.cm-tooltip-autocomplete');
  await expect(offers).toContainText('variables');
  await page.keyboard.press('Escape');
  await editor.write(`${POLL}        `);
  await page.keyboard.press('Control+Space');
  await expect(offers).toContainText('runAfter');
});

test('24: a new text has the actions of the format that it is read as', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(AZURE);
  await editor.right();
  await editor.button(/^Add/).click();
  await expect(editor.dialog.locator('[data-type=Until]')).toBeVisible();
  await expect(editor.dialog.locator('[data-type=until]')).toHaveCount(0);
});

test('24: a hover shows the value of an expression in a chosen past iteration', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await ended(editor, 'hovered', POLL);
  await editor.open('?run=hovered&loop=poll&it=4');
  await editor.right();
  await page.locator('.cm-line', { hasText: 'greater' }).getByText('variables').first().hover();
  await expect(page.locator('.cm-tooltip-hover')).toContainText('12');
});

test('24: the panel and the graph change the text in small edits, which can be undone', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(POLL);
  await editor.right();
  await editor.node('poll').click({ position: { x: 30, y: 12 } });
  const count = editor.panel.getByLabel(/^Count|Max/).first();
  await count.fill('60');
  await count.blur();
  await expect.poll(() => editor.whole()).toBe(POLL.replace('count: 50', 'count: 60'));
  await editor.button('Undo').click();
  await expect.poll(() => editor.whole()).toBe(POLL);
  // An action behind another.
  await editor.right();
  await editor.node('poll/count').click();
  await editor.panel.getByRole('button', { name: 'Add after' }).click();
  await page.keyboard.type('compose');
  await editor.dialog.getByLabel('Name').fill('told');
  await page.keyboard.press('Enter');
  await expect(editor.node('poll/told')).toBeVisible();
  const text = await editor.whole();
  expect(text).toContain('  poll:   # until enough were seen');
  expect(text.indexOf('told:')).toBeGreaterThan(text.indexOf('value: 3'));
  await editor.panel.getByRole('button', { name: 'Delete' }).click();
  await expect(editor.node('poll/told')).toHaveCount(0);
  await expect.poll(() => editor.whole()).toBe(POLL);
});

test('24: a condition is tested against the iterations of a past run, an action by a dry run', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await ended(editor, 'past', POLL);
  await editor.open('?run=past');
  await editor.right();
  await editor.node('poll').click({ position: { x: 30, y: 12 } });
  await editor.panel.getByRole('button', { name: 'Test the condition' }).click();
  await editor.dialog.getByLabel('Condition').fill("@greater(variables('seen'), 10)");
  await editor.dialog.getByRole('button', { name: 'Test', exact: true }).click();
  await expect(page.getByTestId('verdict')).toContainText('It would have stopped at 4. The run ended at 11.');
  await page.keyboard.press('Escape');
  await editor.write(`name: one
actions:
  say: { type: compose, inputs: "hello @{inputs('who')}" }
`);
  await editor.right();
  await editor.node('say').click();
  await editor.panel.getByRole('button', { name: 'Dry run' }).click();
  await editor.dialog.getByLabel('Values of run').fill('');
  await editor.dialog.getByLabel('Inputs').fill('{"who": "ann"}');
  await editor.dialog.getByRole('button', { name: 'Try' }).click();
  await expect(page.getByTestId('tried')).toContainText('hello ann');
});

test('24: Ctrl+Enter in the text runs it', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  const text = 'name: greets\ninputs: { who: { type: string, default: ann, description: Who is greeted. }, loud: { type: boolean, default: true } }\nactions: { say: { type: compose, inputs: "hello" } }\n';
  await editor.open();
  await editor.write(text);
  await editor.right();
  await page.keyboard.press('Control+Enter');
  await expect(editor.dialog.getByLabel('who')).toHaveAttribute('placeholder', 'ann');
  await expect(editor.dialog.getByLabel('loud')).toBeChecked();
  await expect(editor.dialog).toContainText('Who is greeted.');
  expect(await editor.whole()).toBe(text);
  await page.keyboard.press('Escape');
  // A text with a mistake is not run: the dialog has the mistake and its line.
  await editor.write(text.replace('compose', 'composed'));
  await page.keyboard.press('Control+Enter');
  await expect(editor.dialog).toContainText(/3: .*composed/);
  await expect(editor.dialog).not.toContainText('It has no inputs');
  await expect(editor.dialog.getByRole('button', { name: 'Run' })).toBeDisabled();
});

test('24: a node of a canvas is moved by mouse and by keys, and its position is saved', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(CANVAS);
  await editor.right();
  await editor.button('As placed').click();
  const node = editor.node('second');
  await expect(node).toBeVisible();
  const box = (await node.boundingBox())!;
  await page.mouse.move(box.x + 40, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 140, box.y + 80, { steps: 5 });
  await page.mouse.up();
  await expect.poll(() => editor.whole()).toMatch(/position:\s*\{\s*x:/);
  const placed = async (): Promise<number[]> => [...(await editor.whole()).matchAll(/x: (-?\d+)/g)].map((match) => Number(match[1]));
  const [, before] = await placed();
  // The picture is drawn again with the answer of the server, which takes the focus away.
  await editor.right();
  const moved = async (): Promise<number> => (await placed())[1]! - before!;
  await expect(async () => {
    if ((await moved()) === 0) {
      await node.focus();
      await page.keyboard.press('Shift+ArrowRight');
    }
    expect(await moved()).toBeGreaterThan(0);
  }).toPass();
  expect((await moved()) % 20).toBe(0);
  await editor.right();
});

test('a node is added where its dialog says, though the graph came after the dialog', async ({ page, gallery }) => {
  const editor = new Editor(page, gallery.url);
  await editor.open();
  await editor.write(LOOP);
  await editor.right();
  await editor.node('again').click({ position: { x: 40, y: 14 } });
  let arrive: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (arrive = resolve));
  await page.route(/\/v1\/validate/, async (route) => {
    await opened;
    await route.continue();
  });
  await editor.panel.getByRole('button', { name: 'Open inside' }).click();
  await editor.button(/^Add a$/).click();
  const where = editor.dialog.getByLabel('Where');
  await expect(where).toBeVisible();
  arrive();
  await expect(where.getByRole('option', { name: 'inside two' })).toHaveCount(0);
  await expect(where).toHaveValue('inside again');
  await editor.dialog.getByLabel('Name').fill('inner');
  await editor.dialog.locator('[data-type="function"]').click();
  await expect(editor.dialog).toHaveCount(0);
  await expect(editor.node('again/inner')).toBeVisible();
});
