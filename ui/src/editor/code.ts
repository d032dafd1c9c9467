// The text as CodeMirror edits it. Diagnostics, completions and hovers are requested from the server.
import { autocompletion, completionKeymap, snippet, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, isolateHistory } from '@codemirror/commands';
import { indentUnit } from '@codemirror/language';
import { lintGutter, nextDiagnostic, previousDiagnostic, setDiagnostics, type Diagnostic as Mark } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { Annotation, EditorState, Text, Transaction, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from '@codemirror/view';
import { language } from './language';
import type { CompletionItem, Diagnostic, Position, Range, TextEdit } from './requests';

/** Marks changes by the screen itself, after which the cursor's place is not a choice of the user. */
export const byScreen = Annotation.define<boolean>();

/** What the editor of a text reports, and what it requests. */
export interface Ends {
  changed: (transaction: Transaction) => void;
  moved: (at: number) => void;
  complete: (at: Position, signal: AbortSignal) => Promise<{ range: Range; items: CompletionItem[] }>;
  /** Parts of a hover, each with its kind: a value, an error or a text. */
  hover: (at: Position) => Promise<{ range: Range; parts: [kind: string, text: string][] } | null>;
  /** Returns foreign text in a form that is safe to show. */
  safe: (text: string) => string;
  fix: (edits: TextEdit[]) => void;
}

export function positionOf(text: Text, offset: number): Position {
  const line = text.lineAt(offset);
  return { line: line.number - 1, character: offset - line.from };
}

export function offsetOf(text: Text, at: Position): number {
  const line = text.line(Math.max(1, Math.min(text.lines, at.line + 1)));
  return Math.min(line.to, line.from + Math.max(0, at.character));
}

/** Returns the text as it is sent, with its original line ends. */
export const plain = (state: EditorState): string => state.sliceDoc();

export function changesOf(text: Text, edits: TextEdit[]): { from: number; to: number; insert: Text }[] {
  return edits.map((edit) => ({
    from: offsetOf(text, edit.range.start),
    to: offsetOf(text, edit.range.end),
    insert: Text.of(edit.new_text.split(/\r\n?|\n/)),
  }));
}

/** Applies edits to the text, as one step that can be undone. */
export function applied(state: EditorState, edits: TextEdit[], what: string): Transaction {
  const changes = state.changes(changesOf(state.doc, edits));
  let first: number | undefined;
  changes.iterChanges((_from, _to, from) => (first ??= from));
  return state.update({
    changes,
    ...(first === undefined ? {} : { selection: { anchor: first }, scrollIntoView: true }),
    annotations: [isolateHistory.of('full'), byScreen.of(true), Transaction.userEvent.of(what)],
  });
}

function marks(text: Text, diagnostics: Diagnostic[], { fix, safe }: Ends): Mark[] {
  return diagnostics.map((one) => {
    const { from, to } = placeOf(text, one);
    return {
      from,
      to,
      severity: one.severity === 'error' ? 'error' : 'warning',
      message: safe(one.hint ? `${one.message}\n${one.hint}` : one.message),
      actions: (one.fixes ?? []).map((a) => ({ name: a.title, apply: () => fix(a.edits) })),
    };
  });
}

/** Returns the place of a diagnostic in the text. */
export function placeOf(text: Text, one: Diagnostic): { from: number; to: number } {
  const from = offsetOf(text, one.range.start);
  return { from, to: Math.max(from, offsetOf(text, one.range.end)) };
}

export function shown(state: EditorState, diagnostics: Diagnostic[], ends: Ends): Transaction {
  return state.update(setDiagnostics(state, marks(state.doc, diagnostics, ends)));
}

const KINDS: Record<string, string> = { key: 'property', value: 'constant', function: 'function', action: 'class', variable: 'variable', port: 'property', input: 'variable', snippet: 'text' };

function offer(item: CompletionItem): Completion {
  const template = item.insert.replace(/\$0/g, '${}');
  return {
    label: item.label,
    type: KINDS[item.kind] ?? 'text',
    ...(item.detail ? { detail: item.detail } : {}),
    ...(item.documentation ? { info: item.documentation } : {}),
    apply: item.snippet ? snippet(template) : item.insert,
  };
}

function completions(ends: Ends) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const before = context.state.doc.lineAt(context.pos).text.slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
    if (!context.explicit && !/[\w$@.('"/:{-]\s?$/.test(before)) return null;
    const stop = new AbortController();
    context.addEventListener('abort', () => stop.abort());
    try {
      const { range, items } = await ends.complete(positionOf(context.state.doc, context.pos), stop.signal);
      if (items.length === 0) return null;
      return { from: offsetOf(context.state.doc, range.start), to: Math.max(context.pos, offsetOf(context.state.doc, range.end)), options: items.map(offer), validFor: /^[\w$-]*$/ };
    } catch {
      return null;
    }
  };
}

function hovers(ends: Ends): Extension {
  return hoverTooltip(async (view, at) => {
    const answer = await ends.hover(positionOf(view.state.doc, at)).catch(() => null);
    if (!answer) return null;
    return {
      pos: offsetOf(view.state.doc, answer.range.start),
      end: offsetOf(view.state.doc, answer.range.end),
      create: () => {
        const dom = document.createElement('div');
        dom.className = 'hover';
        for (const [kind, text] of answer.parts) {
          const part = dom.appendChild(document.createElement('div'));
          part.className = `hover-${kind}`;
          part.textContent = text;
        }
        return { dom };
      },
    };
  });
}

const theme = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--card)', color: 'var(--text)', fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-gutters': { backgroundColor: 'var(--card)', color: 'var(--soft)', borderRight: '1px solid var(--line)' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)', borderLeftWidth: '2px' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--chosen) 45%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { background: 'color-mix(in srgb, var(--accent) 30%, transparent)' },
  '.cm-tooltip': { backgroundColor: 'var(--card)', color: 'var(--text)', border: '1px solid var(--line-strong)', borderRadius: '6px', maxWidth: 'min(520px, 90vw)', overflowWrap: 'anywhere' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--chosen)', color: 'var(--text)' },
  '.cm-completionDetail': { color: 'var(--soft)' },
  '.cm-completionInfo': { whiteSpace: 'pre-wrap' },
  '.cm-diagnostic': { whiteSpace: 'pre-wrap' },
  '.cm-diagnosticAction': { backgroundColor: 'var(--accent)', color: 'var(--accent-text)', minHeight: '24px' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
  '.cm-button, .cm-textfield, .cm-panel button': { minHeight: '26px', minWidth: '26px' },
  '.cm-textfield': { backgroundColor: 'var(--card)', color: 'var(--text)', border: '1px solid var(--line-strong)' },
  '.cm-button': { backgroundColor: 'var(--card)', backgroundImage: 'none', color: 'var(--text)', border: '1px solid var(--line-strong)' },
  '.cm-searchMatch': { backgroundColor: 'var(--hold-soft)', outline: '1px solid var(--hold)' },
  '.hover': { padding: '6px 10px', fontFamily: 'var(--sans)' },
  '.hover-text': { whiteSpace: 'pre-wrap' },
  '.hover-value': { fontFamily: 'var(--mono)', color: 'var(--good)' },
  '.hover-error': { color: 'var(--bad)' },
});

function firstFix(view: EditorView, diagnostics: Diagnostic[], fix: Ends['fix']): boolean {
  const at = view.state.selection.main.head;
  const line = view.state.doc.lineAt(at);
  const near = diagnostics.filter((one) => {
    const place = placeOf(view.state.doc, one);
    return place.from <= line.to && place.to >= line.from;
  });
  const best = near.flatMap((one) => one.fixes ?? [])[0];
  if (best) fix(best.edits);
  return best !== undefined;
}

/** Handles typing over a selection. Chromium would copy the style as a `style` attribute, which the policy refuses. */
const typedOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (event.inputType !== 'insertText' || event.data === null || view.composing || view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true });
    return true;
  },
});

/** Returns the state of a text with its history, so that undo also works later. */
export function stateOf(text: string, ends: Ends, diagnostics: () => Diagnostic[], readOnly: boolean): EditorState {
  return EditorState.create({
    doc: text,
    extensions: [
      ...(text.includes('\r\n') ? [EditorState.lineSeparator.of('\r\n')] : []),
      EditorState.readOnly.of(readOnly),
      indentUnit.of('  '),
      EditorState.tabSize.of(2),
      lineNumbers(),
      history(),
      drawSelection(),
      highlightActiveLine(),
      language,
      lintGutter(),
      search({ top: true }),
      autocompletion({ override: [completions(ends)], icons: false }),
      hovers(ends),
      theme,
      typedOver,
      keymap.of([
        { key: 'F8', run: nextDiagnostic },
        { key: 'Shift-F8', run: previousDiagnostic },
        { key: 'Mod-.', run: (view) => firstFix(view, diagnostics(), ends.fix) },
        ...completionKeymap,
        ...searchKeymap,
        ...historyKeymap,
        // Ctrl+Enter runs the text; see EditorPage.
        ...defaultKeymap.filter(({ key }) => key !== 'Mod-Enter'),
      ]),
      EditorView.contentAttributes.of({ 'aria-label': 'Text of the workflow', spellcheck: 'false', tabindex: '0' }),
      EditorView.updateListener.of((update) => {
        for (const transaction of update.transactions) if (transaction.docChanged) ends.changed(transaction);
        const own = update.transactions.some((one) => one.annotation(byScreen) === true);
        if ((update.selectionSet || update.docChanged) && !own) ends.moved(update.state.selection.main.head);
      }),
    ],
  });
}
