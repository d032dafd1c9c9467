// Values as a user writes them into a field, and choices as the server names them.
import { integer, parse, print } from '../api/json';
import type { Json } from '../api/types';
import type { Choice } from './requests';

/** Returns the text that a field shows for a value. */
export function written(value: Json | undefined): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : print(value, typeof value === 'object' ? 1 : undefined);
}

/** Reads what a user wrote: as JSON if it is valid JSON, else as text. */
export function read(text: string): Json {
  try {
    return parse<Json>(text);
  } catch {
    return text;
  }
}

/** Returns a number, or the text of an expression for a number. */
export function number(text: string): Json {
  const trimmed = text.trim();
  const [, digits] = /^(-?\d+)(?:\.0+)?$/.exec(trimmed) ?? [];
  if (digits !== undefined) return integer(digits);
  return trimmed !== '' && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** Returns choices, each with its key, its label and its value. */
export function options(choices: Choice[] | undefined, now?: Json): { key: string; label: string; value: Json }[] {
  const all: { key: string; label: string; value: Json }[] = (choices ?? []).map(({ value, label }) => ({ key: print(value), label, value }));
  if (now === undefined || now === null || all.some((one) => one.key === print(now))) return all;
  return [...all, { key: print(now), label: `${written(now)} (not known)`, value: now }];
}
