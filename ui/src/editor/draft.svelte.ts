// A text that is edited: its check results, the chosen node, and its changes.
import { redo, redoDepth, undo, undoDepth } from '@codemirror/commands';
import { nextDiagnostic, previousDiagnostic } from '@codemirror/lint';
import type { EditorState, Transaction } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { untrack } from 'svelte';
import { isAbort, messageOf, Refusal } from '../api/http';
import * as server from '../api/requests';
import type { FileText, Graph, GraphNode } from '../api/types';
import { notices } from '../shell/notices.svelte';
import { brief, lines } from '../words/text';
import { applied, byScreen, offsetOf, placeOf, plain, positionOf, shown, stateOf, type Ends } from './code';
import * as requests from './requests';
import type { Diagnostic, Edit, Panel, Source, Symbol, TextEdit, Validation } from './requests';

/** Delay of the check after the last key, in milliseconds. */
const STILL = 250;

/** The part of the text that belongs to a node of the graph. Its place moves with the text. */
interface Anchor {
  path: string;
  from: number;
  to: number;
}

/** The iteration of a past run whose values are shown. */
export interface Past {
  run: string;
  iteration: string;
}

/** A stored version of a workflow: the text of its main file, and its further files. */
export interface Stored {
  version: string | undefined;
  text: string;
  files: FileText[];
}

export class Draft {
  text = $state('');
  /** The text as it was stored or created. */
  saved = $state('');
  name = $state('');
  version = $state<string>();
  file = $state('workflow.yaml');
  /** The further files of the text. Only a merge changes them. */
  files = $state.raw<FileText[]>([]);
  savedFiles = $state.raw<FileText[]>([]);
  given = $state<string>();
  loading = $state(true);
  error = $state('');
  answer = $state.raw<Validation>();
  /** The graph of the last valid text. */
  graph = $state.raw<Graph>();
  anchors = $state.raw<Anchor[]>([]);
  root = $state('');
  open = $state('all');
  /** The path of the chosen node. */
  selected = $state('');
  panel = $state.raw<Panel>();
  panelError = $state('');
  past = $state.raw<Past>({ run: '', iteration: '' });
  undos = $state(0);
  redos = $state(0);
  checks = $state(0);
  view: EditorView | undefined;
  private state: EditorState | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private checkAbort: AbortController | undefined;
  private panelAbort: AbortController | undefined;
  private queue: Promise<unknown> = Promise.resolve();

  dirty = $derived(this.text !== this.saved || this.files !== this.savedFiles);
  wrong = $derived(this.answer !== undefined && !this.answer.valid);
  diagnostics = $derived(this.answer?.diagnostics ?? []);
  dialect = $derived(this.answer?.dialect ?? this.given ?? this.guess());
  node = $derived(this.nodeOf(this.selected));
  /** The paths of nodes with mistakes. */
  faulty = $derived(new Set(this.answer?.valid === false ? this.diagnostics.filter((one) => one.severity === 'error').map((one) => this.pathAt(this.placeOf(one))) : []));

  /** Loads the text of a stored workflow or of a run, or creates a new one. */
  async load(from: { workflow: string; run: string }): Promise<void> {
    try {
      if (from.workflow !== '') {
        const { workflow, version } = await requests.storedWorkflow(from.workflow);
        const [first, ...rest] = workflow.files;
        this.name = workflow.name;
        this.version = version;
        this.begin(first?.text ?? '', first?.path ?? 'workflow.yaml', rest, workflow.dialect);
      } else if (from.run !== '') {
        const source = await server.source(from.run);
        const [first, ...rest] = source.files;
        this.begin(first?.text ?? '', first?.path ?? 'workflow.yaml', rest, source.dialect);
      } else {
        this.begin('', 'workflow.yaml', [], undefined);
      }
    } catch (error) {
      this.error = messageOf(error);
    }
    this.loading = false;
  }

  private begin(text: string, file: string, files: FileText[], dialect: string | undefined): void {
    this.file = file;
    this.files = this.savedFiles = files;
    this.given = dialect;
    this.state = stateOf(text, this.ends, () => this.diagnostics, false);
    this.saved = this.text = plain(this.state);
    if (text !== '') void this.check();
  }

  /** Returns the text with the settings that it is read with. */
  source(text = this.text): Source {
    return { text, file: this.file, ...(this.files.length > 0 ? { files: this.files } : {}), ...(this.given === undefined ? {} : { dialect: this.given }) };
  }

  private guess(): string {
    return /^\s*"?(dialect"?: *"?canvas|nodes"?:)/m.test(this.text) ? 'canvas' : 'loom';
  }

  // The text.

  mount(root: ShadowRoot): () => void {
    this.view = new EditorView({ state: this.state, root, parent: root });
    return () => {
      this.state = this.view?.state;
      this.view?.destroy();
      this.view = undefined;
    };
  }

  private now(): EditorState | undefined {
    return this.view?.state ?? this.state;
  }

  private dispatch(make: (state: EditorState) => Transaction): void {
    const state = this.now();
    if (!state) return;
    const transaction = make(state);
    if (this.view) this.view.dispatch(transaction);
    else {
      this.state = transaction.state;
      if (transaction.docChanged) this.ends.changed(transaction);
    }
  }

  private ends: Ends = {
    changed: (transaction) => {
      this.text = plain(transaction.state);
      this.undos = undoDepth(transaction.state);
      this.redos = redoDepth(transaction.state);
      this.anchors = this.anchors.map(({ path, from, to }) => ({ path, from: transaction.changes.mapPos(from, 1), to: transaction.changes.mapPos(to, -1) }));
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.check(), STILL);
    },
    moved: (at) => {
      const path = this.pathAt(at);
      if (path !== '' && path !== (this.node?.path ?? this.selected)) this.choose(path);
    },
    complete: (at, signal) => requests.complete(this.source(), at, signal),
    hover: async (at) => {
      const answer = await requests.hover(this.source(), at, this.past.iteration === '' ? {} : this.past);
      if (!answer) return null;
      const value: [string, string][] = answer.error ? [['error', lines(answer.error)]] : answer.value === undefined ? [] : [['value', `= ${brief(answer.value, 400)}`]];
      return { range: answer.range, parts: [...value, ['text', lines(answer.text)]] };
    },
    safe: lines,
    fix: (edits) => this.put(edits, 'input.fix'),
  };

  /** Changes the text by edits of the server. */
  put(edits: TextEdit[], what: string): void {
    this.dispatch((state) => applied(state, edits, what));
    void this.check();
  }

  /** Replaces the text with another one, as one step. */
  replace(text: string): void {
    const state = this.now();
    if (!state) return;
    const end = positionOf(state.doc, state.doc.length);
    this.put([{ range: { start: { line: 0, character: 0 }, end }, new_text: text }], 'input.replace');
  }

  undo(): void {
    if (this.view && undo(this.view)) void this.check();
  }

  redo(): void {
    if (this.view && redo(this.view)) void this.check();
  }

  // Check results.

  async check(): Promise<void> {
    clearTimeout(this.timer);
    this.checkAbort?.abort();
    const abort = (this.checkAbort = new AbortController());
    const source = this.source();
    if (source.text.trim() === '') {
      this.answer = undefined;
      this.graph = undefined;
      this.panel = undefined;
      return;
    }
    try {
      const [answer, tree] = await Promise.all([
        requests.validate(source, this.open, this.root, abort.signal),
        requests.symbols(source, abort.signal).catch((error: unknown) => (isAbort(error) ? Promise.reject(error as Error) : undefined)),
      ]);
      if (abort.signal.aborted || source.text !== this.text) return;
      await this.take(answer, tree?.symbols);
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Refusal && error.status === 400 && (this.root !== '' || this.open !== 'all')) {
        this.root = '';
        this.open = 'all';
        return this.check();
      }
      this.error = messageOf(error);
    }
  }

  private async take(answer: Validation, tree: Symbol[] | undefined): Promise<void> {
    this.error = '';
    this.answer = answer;
    if (answer.graph) this.graph = answer.graph;
    const state = this.now();
    if (state) {
      if (tree && tree.length > 0) this.anchors = flat(tree).map(({ path, range }) => ({ path, from: offsetOf(state.doc, range.start), to: offsetOf(state.doc, range.end) }));
      else if (answer.graph) this.anchors = anchorsOf(answer.graph, state);
      this.dispatch((now) => shown(now, answer.diagnostics.filter((one) => !one.file || one.file === this.file), this.ends));
    }
    this.checks += 1;
    await this.askPanel();
  }

  private placeOf(one: Diagnostic): number {
    const state = this.now();
    return state ? placeOf(state.doc, one).from : 0;
  }

  /** Returns the path of the innermost node at a place of the text. */
  pathAt(at: number): string {
    let best: Anchor | undefined;
    for (const anchor of this.anchors) {
      if (anchor.from <= at && at <= anchor.to && (!best || anchor.from >= best.from)) best = anchor;
    }
    return best?.path ?? '';
  }

  /** Shows the place of a diagnostic. */
  goTo(one: Diagnostic): void {
    this.reveal(this.placeOf(one));
    this.view?.focus();
  }

  /** Moves to the next or the previous diagnostic. */
  next(back: boolean): void {
    if (!this.view) return;
    (back ? previousDiagnostic : nextDiagnostic)(this.view);
    this.view.focus();
  }

  private reveal(at: number): void {
    this.dispatch((state) => state.update({ selection: { anchor: Math.min(at, state.doc.length) }, effects: EditorView.scrollIntoView(Math.min(at, state.doc.length), { y: 'center' }), annotations: byScreen.of(true) }));
  }

  // The chosen node.

  nodeOf(id: string): GraphNode | undefined {
    if (id === '') return undefined;
    const nodes = this.graph?.nodes ?? [];
    return nodes.find((node) => node.id === id) ?? nodes.find((node) => node.path === id && node.kind !== 'choice') ?? (this.graph?.root && (this.graph.root.id === id || this.graph.root.path === id) ? this.graph.root : undefined);
  }

  /** Chooses a node. `show` also shows the node's place in the text. */
  choose(id: string, show = false): void {
    const node = untrack(() => this.nodeOf(id));
    // Ids are numbers of nodes, so after an edit an id may belong to another node.
    const path = node?.path ?? id;
    if (path !== this.selected) {
      this.selected = path;
      void this.askPanel();
    }
    if (!show) return;
    const anchor = this.anchors.find((one) => one.path === node?.path);
    const state = this.now();
    if (anchor) this.reveal(anchor.from);
    else if (state && node?.line) this.reveal(offsetOf(state.doc, { line: node.line - 1, character: 0 }));
  }

  drill(root: string): void {
    this.root = root;
    void this.check();
  }

  fold(open: string): void {
    this.open = open;
    void this.check();
  }

  private async askPanel(): Promise<void> {
    this.panelAbort?.abort();
    const id = this.selected;
    if (id === '') {
      this.panel = undefined;
      return;
    }
    const abort = (this.panelAbort = new AbortController());
    try {
      const panel = await requests.panel(this.source(), id, abort.signal);
      if (abort.signal.aborted) return;
      this.panel = panel;
      this.panelError = '';
    } catch (error) {
      if (isAbort(error)) return;
      this.panelError = messageOf(error);
      if (this.panel && this.panel.node !== id) this.panel = undefined;
    }
  }

  // Changes.

  /** Edits the text through the server, one change after the other. Shows the reason of a refusal. */
  edit(edits: Edit[]): Promise<string | undefined> {
    const next = this.queue.then(() => this.change(edits));
    this.queue = next.catch(() => undefined);
    return next;
  }

  /** Makes a change; returns why the server refused it. */
  private async change(edits: Edit[]): Promise<string | undefined> {
    try {
      for (let tries = 0; tries < 5; tries += 1) {
        const before = this.text;
        const answer = await requests.edit(this.source(before), edits);
        if (this.text !== before) continue;
        this.dispatch((state) => applied(state, answer.edits, 'input.edit'));
        if (answer.node) this.selected = answer.node;
        await this.check();
        return undefined;
      }
      return 'The text changed meanwhile. Do it again.';
    } catch (error) {
      notices.show(messageOf(error), { bad: true });
      return messageOf(error);
    }
  }

  /** Replaces the text and its further files with merged ones. The next save replaces the version `base`. */
  merge(text: string, files: FileText[], base: Stored | undefined): void {
    this.files = files;
    if (base) {
      if (same(files, base.files)) this.files = base.files;
      this.savedFiles = base.files;
      this.saved = base.text;
      this.version = base.version;
    }
    if (text === this.text) void this.check();
    else this.replace(text);
  }

  /** Saves the text under a name. If another version is stored there, returns that version. */
  async keep(name: string, known: string | undefined): Promise<Stored | undefined> {
    const source = this.source();
    const { files } = this;
    try {
      this.version = await requests.keep(name, { ...source, ...(this.name === name ? {} : { file: undefined }) }, known);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 412) throw error;
      const { workflow, version } = await requests.storedWorkflow(name);
      const [first, ...rest] = workflow.files;
      return { version, text: first?.text ?? '', files: rest };
    }
    this.name = name;
    this.saved = source.text;
    this.savedFiles = files;
    found(this, name);
    return undefined;
  }
}

function same(some: FileText[], others: FileText[]): boolean {
  return some.length === others.length && some.every(({ path, text }) => others.some((other) => other.path === path && other.text === text));
}

function flat(symbols: Symbol[]): Symbol[] {
  return symbols.flatMap((one) => [...(one.path === '' ? [] : [one]), ...flat(one.children)]);
}

/** Returns the parts of the text that belong to nodes. Each ends before the next node that is not inside of it. */
function anchorsOf(graph: Graph, state: EditorState): Anchor[] {
  const nodes = graph.nodes.filter((node) => node.line && (node.file ?? 0) === 0 && node.path !== '' && node.kind !== 'choice');
  const sorted = [...nodes].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  const inside = (node: GraphNode, other: GraphNode): boolean => other.path.startsWith(`${node.path}/`) || other.parent === node.id;
  return sorted.map((node, index) => {
    const after = sorted.slice(index + 1).find((other) => !inside(node, other));
    const from = offsetOf(state.doc, { line: (node.line ?? 1) - 1, character: 0 });
    const to = after ? offsetOf(state.doc, { line: (after.line ?? 1) - 1, character: 0 }) - 1 : state.doc.length;
    return { path: node.path, from, to };
  });
}

// Drafts are stored until the tab is closed, so a user that leaves the editor and returns finds the text again.
const drafts = new Map<string, Draft>();

export function draftOf(from: { workflow: string; run: string }): Draft {
  const key = from.workflow !== '' ? `workflow ${from.workflow}` : from.run !== '' ? `run ${from.run}` : 'new';
  let draft = drafts.get(key);
  if (!draft || (!draft.dirty && !draft.loading && !draft.view)) {
    draft = new Draft();
    drafts.set(key, draft);
    void draft.load(from);
  }
  return draft;
}

/** Registers a draft under the name that it was saved under. */
function found(draft: Draft, name: string): void {
  for (const [key, one] of drafts) if (one === draft) drafts.delete(key);
  drafts.set(`workflow ${name}`, draft);
}

addEventListener('beforeunload', (event) => {
  if ([...drafts.values()].some((draft) => draft.dirty)) event.preventDefault();
});

