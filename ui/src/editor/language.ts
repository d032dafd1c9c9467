// The colours of a workflow's text: keys, values and the expressions in them, for YAML and JSON.
import { HighlightStyle, StreamLanguage, type StringStream, syntaxHighlighting } from '@codemirror/language';
import { tags } from '@lezer/highlight';

interface State {
  /** What ends the text that a previous line began: a quote, a bracket of an expression, or nothing. */
  quote: string;
  /** The indentation above which lines belong to a block of text (`|`, `>`), or -1. */
  block: number;
}

/** Reads one expression from its beginning: `@{…}`, `{{ … }}`, `@name(…)`. */
function expression(stream: StringStream): boolean {
  if (stream.match(/^@\{[^}]*\}?/) || stream.match(/^\{\{.*?\}\}/) || stream.match(/^\{%.*?%\}/)) return true;
  return stream.match(/^@[A-Za-z_][\w.]*(\([^"]*\)[\w.?[\]']*)?/) !== null;
}

function quoted(stream: StringStream, state: State): string {
  if (expression(stream)) return 'special';
  while (!stream.eol()) {
    const next = stream.next();
    if (next === '\\' && state.quote === '"') stream.next();
    else if (next === state.quote) {
      state.quote = '';
      break;
    }
    if (/^(@\{|@[A-Za-z_]|\{\{)/.test(stream.string.slice(stream.pos, stream.pos + 2))) break;
  }
  return 'string';
}

const workflow = StreamLanguage.define<State>({
  name: 'workflow',
  languageData: { commentTokens: { line: '#' }, closeBrackets: { brackets: ['(', '[', '{', '"', "'"] } },
  startState: () => ({ quote: '', block: -1 }),
  copyState: (state) => ({ ...state }),
  token(stream, state) {
    if (stream.sol() && stream.string.trim() !== '' && stream.indentation() <= state.block) state.block = -1;
    if (state.block >= 0) {
      if (expression(stream)) return 'special';
      stream.next();
      stream.match(/^[^@{]+/);
      return 'string';
    }
    if (state.quote !== '') return quoted(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.peek() === '#') {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match(/^("([^"\\]|\\.)*"|'[^']*'|[\w$./-][\w$./ -]*?)(?=\s*:(\s|$))/)) return 'key';
    if (stream.match(/^[|>][+-]?\d?\s*(#.*)?$/)) {
      state.block = stream.indentation();
      return 'operator';
    }
    if (stream.match(/^\{\{.*?\}\}/)) return 'special';
    const next = stream.next() ?? '';
    if (next === '"' || next === "'") {
      state.quote = next;
      return quoted(stream, state);
    }
    if ('{}[],:-?&*!<'.includes(next)) {
      if (/[&*!]/.test(next)) stream.match(/^[\w-]+/);
      return /[&*!]/.test(next) ? 'operator' : 'punctuation';
    }
    stream.match(/^[^,\]}#\n]*?(?=\s*([,\]}]|\s#|$))/);
    const word = stream.current().trim();
    if (/^-?[\d.]+([eE][+-]?\d+)?$/.test(word)) return 'number';
    if (/^(true|false|null|~|yes|no)$/i.test(word)) return 'atom';
    return null;
  },
  tokenTable: {
    key: tags.propertyName,
    special: tags.special(tags.string),
    atom: tags.atom,
  },
});

const look = HighlightStyle.define([
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: tags.special(tags.string), color: 'var(--wait)', fontWeight: '600' },
  { tag: [tags.number, tags.atom], color: 'var(--run)' },
  { tag: [tags.operator, tags.punctuation], color: 'var(--soft)' },
]);

export const language = [workflow, syntaxHighlighting(look)];
