// What the editor asks the server. Everything is told by the text that comes along: nothing is kept there.
import { ask, query } from '../api/http';
import type { Graph, Json } from '../api/types';

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export interface TextEdit {
  range: Range;
  new_text: string;
}

/** A text, and what it is read with. */
export interface Source {
  text: string;
  dialect?: string;
  file?: string;
  files?: { path: string; text: string }[];
}

export interface Diagnostic {
  severity: string;
  code: string;
  message: string;
  hint?: string | null;
  file?: string | null;
  line: number;
  column: number;
  length: number;
  range?: Range | null;
  fixes?: { title: string; edits: TextEdit[] }[];
}

export interface Input {
  name: string;
  type?: string | null;
  required: boolean;
  default?: Json;
  description?: string | null;
  secret?: boolean;
  choices?: Json[];
}

export interface Validation {
  valid: boolean;
  dialect?: string | null;
  diagnostics: Diagnostic[];
  graph?: Graph | null;
  inputs?: Input[];
}

export interface Completion {
  label: string;
  kind: string;
  detail?: string | null;
  documentation?: string | null;
  insert: string;
  snippet?: boolean;
}

export interface Hover {
  range: Range;
  text: string;
  value?: Json;
  error?: string | null;
}

export interface Symbol {
  name: string;
  kind: string;
  path: string;
  range: Range;
  selection: Range;
  children: Symbol[];
}

/** `type` is that of a port, or of the ports that it may be compared with. */
export type Choice = Json | { value: Json; label?: string; type?: string };

export interface Column {
  id: string;
  label: string;
  type: string;
  choices?: Choice[];
}

export interface Field {
  id: string;
  label: string;
  help?: string | null;
  pointer?: string;
  type: 'text' | 'number' | 'bool' | 'duration' | 'choice' | 'expression' | 'condition' | 'file' | 'table' | 'code';
  value: Json;
  default?: Json;
  choices?: Choice[];
  cap?: Json;
  columns?: Column[];
  parts?: { output?: Choice[]; operator?: Choice[]; value?: Choice[] } | null;
  error?: string | null;
}

export interface Panel {
  node: string;
  kind: string;
  title: string;
  format: string;
  pointer: string;
  sections: { title: string; fields: Field[] }[];
  actions: string[];
  /** Of a canvas: the ports of all nodes of the graph that the node stands in. */
  ports?: PortOf[];
}

export interface PortOf {
  node: string;
  name: string;
  type: string;
  side: 'in' | 'out';
}

export type Edit =
  | { op: 'set'; node: string; field: string; value: Json }
  | { op: 'set'; pointer: string; value: Json }
  | { op: 'remove'; pointer: string }
  | { op: 'add'; where: 'before' | 'after' | 'inside'; node: string; name?: string; type?: string; value?: Json; x?: number; y?: number }
  | { op: 'delete'; node: string }
  | { op: 'rename'; node: string; name: string }
  | { op: 'connect' | 'disconnect'; from: string; to: string; in?: string }
  | { op: 'move'; node: string; x: number; y: number };

export interface NodeType {
  type: string;
  title: string;
  description: string;
  value?: Json;
}

export interface ConditionTest {
  tried: number;
  skipped: number;
  stopped_at?: number | null;
  ended_at?: number | null;
  rows: { iteration: number; value: Json; values: Record<string, Json> }[];
  error?: string | null;
}

export interface Tried {
  request?: Json;
  result?: Json;
  error?: string | null;
}

export interface Kept {
  name: string;
  dialect: string;
  files: { path: string; text: string }[];
}

const post = <Answer>(path: string, body: unknown, signal?: AbortSignal) => ask<Answer>(path, { method: 'POST', body, signal });

export const validate = (source: Source, open: string, root: string, signal?: AbortSignal) =>
  post<Validation>(`/validate${query({ graph: true, open, root })}`, source, signal);
export const complete = (source: Source, at: Position, signal?: AbortSignal) =>
  post<{ range: Range; items: Completion[] }>('/language/complete', { ...source, at }, signal);
export const hover = (source: Source, at: Position, past: { run?: string; iteration?: string }) =>
  post<Hover | null>('/language/hover', { ...source, at, ...past });
export const symbols = (source: Source, signal?: AbortSignal) => post<{ symbols: Symbol[] }>('/language/symbols', source, signal);
export const panel = (source: Source, node: string, signal?: AbortSignal) => post<Panel>('/language/panel', { ...source, node }, signal);
export const edit = (source: Source, edits: Edit[]) =>
  post<{ text: string; edits: TextEdit[]; node?: string | null }>('/language/edit', { ...source, edits });
export const types = (dialect: string) => post<{ types: NodeType[] }>('/language/types', { dialect });
export const stubs = (source: Source) => post<{ stubs: Json; text: string }>('/language/stubs', source);
export const tryAction = (source: Source, node: string, past: { run?: string; iteration?: string; inputs?: Json; variables?: Json; outputs?: Json }) =>
  post<Tried>('/language/try', { ...source, node, ...past });
export const testCondition = (run: string, loop: string, condition: Json) =>
  post<ConditionTest>(`/runs/${encodeURIComponent(run)}/test-condition`, { loop, condition });
export const start = (source: Source, how: { input?: Json; stubs?: Json }) => post<{ run: string }>('/runs', { ...source, ...how });

export const workflows = () => ask<{ workflows: { name: string }[] }>(`/workflows${query({ limit: 1000 })}`);

/** A kept workflow and its version. */
export async function kept(name: string): Promise<{ workflow: Kept; version: string | undefined }> {
  let version: string | undefined;
  const workflow = await ask<Kept>(`/workflows/${encodeURIComponent(name)}`, { answered: (headers) => (version = headers.get('etag') ?? undefined) });
  return { workflow, version };
}

/** Keeps a text in place of the version that is known, or as a new workflow; gives the version that it has now. */
export async function keep(name: string, source: Source, known: string | undefined): Promise<string | undefined> {
  let version: string | undefined;
  const headers: Record<string, string> = known === undefined ? { 'If-None-Match': '*' } : { 'If-Match': `"${known.replaceAll('"', '')}"` };
  await ask(`/workflows/${encodeURIComponent(name)}`, { method: 'PUT', body: source, headers, answered: (sent) => (version = sent.get('etag') ?? undefined) });
  return version ?? (await kept(name)).version;
}
