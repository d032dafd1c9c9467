// 24: the review loop of the seed, built from nothing by mouse and by keyboard, run, and read.
import { Console } from '../lib/console.js';
import { Editor } from '../lib/editor.js';
import { expect, test, type Locator, type Page } from '../lib/test.js';

/** How a person does things: each way can do all of it. */
interface Way {
  press: (place: Locator) => Promise<void>;
  /** Writes into a field and leaves it. */
  fill: (place: Locator, text: string) => Promise<void>;
  choose: (place: Locator, label: string) => Promise<void>;
  add: (name: string, type: string) => Promise<void>;
  node: (path: string) => Promise<void>;
  drill: (path: string) => Promise<void>;
  up: () => Promise<void>;
  connect: (from: string, to: string) => Promise<void>;
}

function byMouse(editor: Editor): Way {
  const { page } = editor;
  const way: Way = {
    press: (place) => place.click(),
    fill: async (place, text) => {
      await place.click();
      await place.fill(text);
      await place.blur();
    },
    choose: async (place, label) => {
      await place.selectOption({ label });
    },
    add: async (name, type) => {
      await editor.button(/^Add a$/).click();
      await editor.dialog.getByLabel('Name').fill(name);
      await editor.dialog.locator(`[data-type="${type}"]`).click();
      await expect(editor.dialog).toHaveCount(0);
    },
    node: (path) => editor.node(path).click({ position: { x: 40, y: 14 } }),
    drill: async (path) => {
      await way.node(path);
      await editor.panel.getByRole('button', { name: 'Open inside' }).click();
    },
    up: () => page.getByTestId('crumbs').getByRole('button', { name: 'workflow' }).click(),
    connect: async (from, to) => {
      const [out, into] = [page.locator(`.port-hit.out`).filter({ hasText: from }), page.locator(`.port-hit.in`).filter({ hasText: to })];
      const [a, b] = [await out.boundingBox(), await into.boundingBox()];
      await page.mouse.move(a!.x + a!.width / 2, a!.y + a!.height / 2);
      await page.mouse.down();
      await page.mouse.move(b!.x + b!.width / 2 - 5, b!.y + b!.height / 2, { steps: 4 });
      await page.mouse.move(b!.x + b!.width / 2, b!.y + b!.height / 2);
      await page.mouse.up();
    },
  };
  return way;
}

function byKeys(editor: Editor): Way {
  const { page } = editor;
  const { keyboard } = page;
  const is = (place: Locator): Promise<boolean> => place.evaluate((one) => one === document.activeElement);
  const to = async (place: Locator): Promise<void> => {
    await expect(place).toBeVisible();
    // As a person does, back if the place is before the focus.
    const isBefore = await place.evaluate((one) => (document.activeElement!.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING) !== 0);
    for (let n = 0; n < 120; n += 1) {
      if (await is(place)) return;
      await keyboard.press(isBefore ? 'Shift+Tab' : 'Tab');
    }
    throw new Error(`no ${isBefore ? 'Shift+Tab' : 'Tab'} leads to ${String(place)}`);
  };
  /** Goes to a part with F6, so that not everything before it is passed. */
  const part = async (part: string): Promise<void> => {
    const current = (): Promise<string | null> => page.evaluate(() => document.activeElement?.closest('[data-part]')?.getAttribute('data-part') ?? null);
    for (let n = 0; n < 4; n += 1) {
      const before = await current();
      if (before === part) return;
      await keyboard.press('F6');
      await expect.poll(current).not.toBe(before);
    }
    expect(await current()).toBe(part);
  };
  const way: Way = {
    press: async (place) => {
      await to(place);
      await keyboard.press('Enter');
    },
    fill: async (place, text) => {
      if ((await place.evaluate((one) => one.closest('[data-part=panel]') !== null))) await part('panel');
      await to(place);
      await keyboard.press('Control+a');
      await keyboard.insertText(text);
      await keyboard.press('Tab');
    },
    choose: async (place, label) => {
      await part('panel');
      await to(place);
      const seen = (): Promise<string> => place.evaluate((one) => (one as HTMLSelectElement).selectedOptions[0]?.label ?? '');
      await keyboard.press('Home');
      for (let n = 0; n < 30 && (await seen()) !== label; n += 1) await keyboard.press('ArrowDown');
      expect(await seen()).toBe(label);
    },
    add: async (name, type) => {
      await part('graph');
      await keyboard.press('a');
      await expect(editor.dialog.getByRole('combobox', { name: 'Type' })).toBeFocused();
      await keyboard.type(type);
      await expect(editor.dialog.locator('[aria-selected=true]')).toHaveAttribute('data-type', type);
      await keyboard.press('Shift+Tab');
      await keyboard.press('Shift+Tab');
      await keyboard.type(name);
      await keyboard.press('Enter');
      await expect(editor.dialog).toHaveCount(0);
    },
    node: async (path) => {
      await expect(editor.node(path)).toBeVisible();
      await part('graph');
      await keyboard.press('Home');
      for (let n = 0; n < 40; n += 1) {
        if ((await page.locator(':focus').getAttribute('data-path')) === path) return;
        await keyboard.press('ArrowDown');
      }
      throw new Error(`no arrow leads to ${path}`);
    },
    drill: async (path) => {
      await way.node(path);
      await keyboard.press('Enter');
    },
    up: async () => {
      await part('graph');
      await keyboard.press('Escape');
    },
    connect: async (from, into) => {
      await part('graph');
      await keyboard.press('c');
      for (const [label, wanted] of [['From', from], ['To', into]] as const) {
        const place = editor.dialog.getByLabel(label);
        // The port may have been typed a moment ago.
        await expect(place.locator(`option[value="${wanted}"]`)).toBeAttached();
        await to(place);
        await keyboard.press('Home');
        for (let n = 0; n < 30 && (await place.inputValue()) !== wanted; n += 1) await keyboard.press('ArrowDown');
        expect(await place.inputValue()).toBe(wanted);
      }
      await way.press(editor.dialog.getByRole('button', { name: 'Connect' }));
      await expect(editor.dialog).toHaveCount(0);
    },
  };
  return way;
}

/** Adds a row to a table of the panel: texts are written, the others chosen. */
async function row(editor: Editor, way: Way, table: string, cells: Record<string, string>): Promise<void> {
  const field = editor.field(table);
  const before = await field.locator('tbody tr').count();
  await way.press(field.getByRole('button', { name: /^Add to/ }));
  for (const [column, text] of Object.entries(cells)) {
    const cell = field.getByLabel(`${column}, row ${before + 1}`);
    if ((await cell.evaluate((one) => one.tagName)) === 'SELECT') await way.choose(cell, text);
    else await way.fill(cell, text);
  }
  await way.press(field.getByRole('button', { name: 'Done' }));
  await expect(field.getByRole('button', { name: 'Done' })).toHaveCount(0);
}

async function empty(editor: Editor, way: Way, table: string): Promise<void> {
  const remove = editor.field(table).getByRole('button', { name: /^Remove row 1 / });
  while ((await remove.count()) > 0) {
    const rows = await editor.field(table).locator('tbody tr').count();
    await way.press(remove);
    await expect(editor.field(table).locator('tbody tr')).toHaveCount(rows - 1);
  }
}

const STUBS = JSON.stringify({
  coder: { code: 'a / b' },
  review: [{ approved: false, feedback: 'what of zero?' }, { approved: true, feedback: 'good' }],
});

async function build(editor: Editor, way: Way): Promise<void> {
  const shows = (path: string): Promise<void> => expect(editor.panel.getByLabel('Name', { exact: true })).toHaveValue(path.split('/').at(-1)!);
  await way.press(editor.button('a canvas'));
  await expect.poll(() => editor.whole()).toContain('dialect: canvas');
  await way.add('review-loop', 'loop');
  await expect(editor.node('review-loop')).toBeVisible();
  await shows('review-loop');
  await way.drill('review-loop');
  for (const [name, label, takes, gives] of [
    ['coder', 'Coder', [['task', 'string'], ['context', 'string']], [['code', 'string']]],
    ['review', 'Reviewer', [['code', 'string']], [['approved', 'boolean'], ['feedback', 'string']]],
  ] as const) {
    await way.add(name, 'agent');
    await expect(editor.node(`review-loop/${name}`)).toBeVisible();
    await shows(name);
    await way.fill(editor.field('data.label').getByRole('textbox'), label);
    await way.fill(editor.field('data.runner').getByRole('textbox'), 'claude-code');
    await empty(editor, way, 'outputs');
    for (const [port, type] of takes) await row(editor, way, 'inputs', { Name: port, Type: type });
    for (const [port, type] of gives) await row(editor, way, 'outputs', { Name: port, Type: type });
    await way.fill(editor.field('data.prompt').getByRole('textbox'), name === 'coder' ? 'Task: {{ task }}\nContext: {{ context }}' : 'Review this code:\n{{ code }}');
    await editor.right();
  }
  await way.connect('coder.code', 'review.code');
  await expect.poll(() => editor.whole()).toContain('output:code');
  await way.up();
  await way.node('review-loop');
  await shows('review-loop');
  await way.fill(editor.field('label').getByRole('textbox'), 'Code Review Loop');
  const condition = editor.field('continue_while');
  await way.choose(condition.getByLabel('Continue while: output'), 'review.approved');
  await way.choose(condition.getByLabel('Continue while: value'), 'false');
  await way.fill(editor.field('max_iterations').getByRole('textbox'), '5');
  await row(editor, way, 'inputs', { Name: 'task', Type: 'string' });
  await row(editor, way, 'inputs', { Name: 'guidelines', Type: 'string' });
  await row(editor, way, 'input_mappings', { From: 'task (outer)', To: 'coder.task', When: 'all' });
  await row(editor, way, 'input_mappings', { From: 'guidelines (outer)', To: 'coder.context', When: 'first' });
  await row(editor, way, 'input_mappings', { From: 'review.feedback (previous)', To: 'coder.context', When: 'subsequent' });
  await row(editor, way, 'output_mappings', { From: 'review.approved', To: 'approved', Which: 'last' });
  await row(editor, way, 'output_mappings', { From: 'coder.code', To: 'final_code', Which: 'last' });
  await row(editor, way, 'output_mappings', { From: 'iteration_count', To: 'iterations', Which: 'last' });
  // The step that the loop came with.
  await way.node('review-loop/step');
  await shows('step');
  await way.press(editor.panel.getByRole('button', { name: 'Delete' }));
  await expect(editor.node('review-loop/step')).toHaveCount(0);
  await editor.right();
}

/** What is in the graph, without places: what it is and what leads where. */
async function shape(page: Page, url: string, text: string): Promise<unknown> {
  const answer = await page.request.post(`${url}/v1/validate?graph=true`, { data: { text, file: 'review.yaml' } });
  const { graph, diagnostics } = await answer.json();
  expect(diagnostics.filter((one: { severity: string }) => one.severity === 'error')).toEqual([]);
  const nodes = graph.nodes.map(({ id, line, file, ...rest }: Record<string, unknown>) => rest);
  return { ...graph, nodes, edges: graph.edges };
}

const BY_HAND = `# The review loop, by hand.
dialect: canvas
name: new-workflow
nodes:
  - id: review-loop
    type: loop
    data:
      label: Code Review Loop
      continueWhile: { output: review.approved, operator: "==", value: false }
      maxIterations: 5
      inputs:
        - { name: task, type: string }
        - { name: guidelines, type: string }
      inputMappings:
        - { source: { type: outer, name: task }, target: { node: coder, input: task }, iterations: all }
        - { source: { type: outer, name: guidelines }, target: { node: coder, input: context }, iterations: first }
        - { source: { type: previous, node: review, output: feedback }, target: { node: coder, input: context }, iterations: subsequent }
      outputMappings:
        - { source: { node: review, output: approved }, target: approved, take: last }
        - { source: { node: coder, output: code }, target: final_code, take: last }
        - { source: { type: builtin, name: iteration_count }, target: iterations, take: last }
      inlineWorkflow:
        nodes:
          - id: coder
            type: agent
            data:
              label: Coder
              runner: claude-code
              prompt: "Task: {{ task }}\\nContext: {{ context }}"
              inputs: [{ name: task, type: string }, { name: context, type: string }]
              outputs: [{ name: code, type: string }]
          - id: review
            type: agent
            data:
              label: Reviewer
              runner: claude-code
              prompt: "Review this code:\\n{{ code }}"
              inputs: [{ name: code, type: string }]
              outputs: [{ name: approved, type: boolean }, { name: feedback, type: string }]
        edges:
          - { source: coder, target: review, sourceHandle: "output:code", targetHandle: "input:code" }
`;

for (const [name, make] of [['mouse', byMouse], ['keyboard', byKeys]] as const) {
  test(`24: the review loop is built from nothing by ${name}, run, and read iteration by iteration`, async ({ page, serve }) => {
    test.setTimeout(300_000);
    const server = await serve();
    const editor = new Editor(page, server.url);
    const way = make(editor);
    await editor.open();
    await build(editor, way);
    const text = await editor.whole();
    expect(await shape(page, server.url, text)).toEqual(await shape(page, server.url, BY_HAND));
    // Run it, with answers in place of the agents.
    await page.keyboard.press('Control+Enter');
    await way.fill(editor.dialog.getByLabel(/^task/), 'Write a division.');
    if (name === 'mouse') await editor.dialog.getByRole('checkbox').check();
    else {
      for (let n = 0; n < 9 && !(await editor.dialog.getByRole('checkbox').evaluate((one) => one === document.activeElement)); n += 1) await page.keyboard.press('Tab');
      await page.keyboard.press('Space');
    }
    await expect(editor.dialog.getByRole('textbox', { name: 'Stubs' })).toHaveValue(/review/);
    await way.fill(editor.dialog.getByRole('textbox', { name: 'Stubs' }), STUBS);
    await way.press(editor.dialog.getByRole('button', { name: 'Run' }));
    await expect(page).toHaveURL(/\/ui\/runs\//);
    const console = new Console(page, server.url);
    await expect(console.why).toContainText('Succeeded');
    await console.node('review-loop').focus();
    await page.keyboard.press('[');
    await console.at(1);
    await expect(console.panel).toContainText('what of zero?');
    await page.keyboard.press(']');
    await console.at(2);
    await expect(console.panel).toContainText('good');
  });
}
