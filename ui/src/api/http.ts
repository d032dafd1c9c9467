// Sends requests to the server. A refusal is thrown with its problem details, a lost server as `Unreachable`.
import { parse, print } from './json';
import type { AnswerOf, BodyOf, Operation, Problem } from './types';

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    /** All members of the problem details. */
    readonly problem: Partial<Problem> = {},
  ) {
    super(detail);
  }
}

export class Unreachable extends Error {
  constructor(isChange: boolean) {
    super(`The server does not answer. ${isChange ? 'It is unknown whether the command was carried out: check before you repeat it.' : 'The console retries automatically.'}`);
  }
}

/** Called if the server does not know this browser (401). */
let signedOut = (): void => {};

export function onSignedOut(handler: () => void): void {
  signedOut = handler;
}

export interface Ask {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  body?: unknown;
  token?: string;
  headers?: Record<string, string>;
  /** Receives the headers of an answer that is not a refusal. */
  answered?: (headers: Headers) => void;
  signal?: AbortSignal;
  /** Whether the request changes something on the server. Without it, every method but GET does. */
  isChange?: boolean;
}

export async function ask<Answer>(path: string, how: Ask = {}): Promise<Answer> {
  const headers: Record<string, string> = { Accept: 'application/json', ...how.headers };
  if (how.body !== undefined) headers['Content-Type'] = 'application/json';
  if (how.token !== undefined) headers['Authorization'] = `Bearer ${how.token}`;
  let response: Response;
  let text: string;
  try {
    response = await fetch(`/v1${path}`, {
      method: how.method ?? 'GET',
      headers,
      body: how.body === undefined ? null : print(how.body),
      signal: how.signal ?? null,
      credentials: 'same-origin',
      cache: 'no-store',
    });
    text = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Unreachable(how.isChange ?? (how.method ?? 'GET') !== 'GET');
  }
  if (response.ok) how.answered?.(response.headers);
  if (response.ok) return text === '' ? (undefined as Answer) : parse<Answer>(text);
  if (response.status === 401) signedOut();
  throw refusal(response.status, response.statusText, text);
}

export const post = <Name extends Operation>(path: string, body?: BodyOf<Name>, signal?: AbortSignal) =>
  ask<AnswerOf<Name>>(path, { method: 'POST', body, signal });

/** Posts a question: the request has a body, but changes nothing. */
export const inquire = <Name extends Operation>(path: string, body?: BodyOf<Name>, signal?: AbortSignal) =>
  ask<AnswerOf<Name>>(path, { method: 'POST', body, signal, isChange: false });

function refusal(status: number, title: string, text: string): Refusal {
  try {
    const problem = parse<Partial<Problem>>(text);
    const code = (problem.type ?? '').replace(/^urn:windlass:/, '');
    return new Refusal(status, code, problem.detail || problem.title || title, problem);
  } catch {
    return new Refusal(status, '', text.slice(0, 300) || title || `status ${status}`);
  }
}

/** Returns the query for the members that have a value. */
export function query(members: Record<string, string | number | boolean | null | undefined>): string {
  const parts = Object.entries(members)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
