// Foreign text and numbers in a form that is safe to show: control characters and direction marks become visible.
import { print } from '../api/json';
import type { Json } from '../api/types';

const VISIBLE: Record<string, string> = { '\n': '↵', '\t': '⇥', '\r': '␍' };

/** Returns text on one line: control characters as symbols, direction marks by their code point. */
export function line(text: string): string {
  return text.replace(/[\n\t\r]/g, (one) => VISIBLE[one] ?? one).replace(HIDDEN, reveal);
}

/** Returns text on several lines: line breaks and tabs are unchanged. */
export function lines(text: string): string {
  return text.replace(HIDDEN, reveal);
}

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function reveal(one: string): string {
  const code = one.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

export function number(value: number): string {
  return value.toLocaleString('en-US');
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Returns a value on one line. */
export function brief(value: Json | undefined, most = 80): string {
  if (value === undefined) return '–';
  if (typeof value === 'string') return cut(`"${line(value.slice(0, most + 1))}"`, most);
  if (Array.isArray(value) && value.length > 50) return `[${number(value.length)} items]`;
  return cut(line(print(value)), most);
}

/** Returns the address, if a click on it is harmless. */
export function safeLink(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  try {
    const url = new URL(text);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the part of a value that a JSON pointer names. */
export function at(value: Json | undefined, pointer: string): Json | undefined {
  let here = value;
  for (const part of pointer.split('/').slice(1)) {
    if (here === null || typeof here !== 'object') return undefined;
    const name = part.replace(/~1/g, '/').replace(/~0/g, '~');
    here = Array.isArray(here) ? here[Number(name)] : here[name];
  }
  return here;
}

export const pointer = (parent: string, name: string | number): string =>
  `${parent}/${String(name).replace(/~/g, '~0').replace(/\//g, '~1')}`;
