// Values as a person writes them into a field, and choices as the server names them.
import type { Json } from '../api/types';
import type { Choice } from './requests';

/** What a field shows of a value. */
export function written(value: Json | undefined): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value, null, typeof value === 'object' ? 1 : undefined);
}

/** What was written: JSON if it is, else the text as it is. */
export function read(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** A number, or the text of an expression that gives one. */
export function number(text: string): Json {
  const trimmed = text.trim();
  return trimmed !== '' && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** Choices with the text that represents each, and the value that it represents. */
export function options(choices: Choice[] | undefined, now?: Json): { key: string; label: string; value: Json }[] {
  const all: { key: string; label: string; value: Json }[] = (choices ?? []).map(({ value, label }) => ({ key: JSON.stringify(value), label, value }));
  if (now === undefined || now === null || all.some((one) => one.key === JSON.stringify(now))) return all;
  return [...all, { key: JSON.stringify(now), label: `${written(now)} (not known)`, value: now }];
}
