// The requests of the editor. Each request contains the text, because the server does not store it.
import { ask, inquire, post, query } from '../api/http';
import type { AnswerOf, BodyOf, Json, Schemas } from '../api/types';

export type Position = Schemas['Position'];
export type Range = Schemas['TextRange'];
export type TextEdit = Schemas['TextEdit'];
/** A text, and the settings that it is read with. */
export type Source = Schemas['WorkflowText'];
export type Diagnostic = Schemas['DiagnosticReport'];
export type Validation = Schemas['Validation'];
export type CompletionItem = Schemas['CompletionItem'];
export type Symbol = Schemas['Symbol'];
export type Choice = Schemas['Choice'];
export type Column = Schemas['Column'];
export type Field = Schemas['Field'];
export type Panel = Schemas['Panel'];
export type PortOf = Schemas['PortOf'];
export type Edit = Schemas['Edit'];
export type Where = Schemas['Where'];
export type NodeType = Schemas['NodeType'];
export type ConditionTest = Schemas['ConditionTest'];
export type Tried = Schemas['Tried'];

export const validate = (source: Source, open: string, root: string, signal?: AbortSignal) =>
  inquire<'validate_workflow'>(`/validate${query({ graph: true, open, root })}`, source, signal);
export const complete = (source: Source, at: Position, signal?: AbortSignal) =>
  inquire<'complete'>('/language/complete', { ...source, at }, signal);
export const hover = (source: Source, at: Position, past: Pick<BodyOf<'hover'>, 'run' | 'iteration'>) =>
  inquire<'hover'>('/language/hover', { ...source, at, ...past });
export const symbols = (source: Source, signal?: AbortSignal) => inquire<'symbols'>('/language/symbols', source, signal);
export const panel = (source: Source, node: string, signal?: AbortSignal) =>
  inquire<'get_panel'>('/language/panel', { ...source, node }, signal);
export const edit = (source: Source, edits: Edit[]) => inquire<'edit_text'>('/language/edit', { ...source, edits });
export const types = (dialect: string) => inquire<'get_types'>('/language/types', { dialect });
export const stubs = (source: Source) => inquire<'get_stubs'>('/language/stubs', source);
export const tryAction = (source: Source, node: string, past: Omit<BodyOf<'try_action'>, keyof Source | 'node'>) =>
  post<'try_action'>('/language/try', { ...source, node, ...past });
export const testCondition = (run: string, loop: string, condition: Json) =>
  inquire<'test_condition'>(`/runs/${encodeURIComponent(run)}/test-condition`, { loop, condition });
export const start = (source: Source, how: Pick<Schemas['StartRun'], 'input' | 'stubs'>) =>
  post<'start_run'>('/runs', { ...source, ...how });

export const workflows = () => ask<AnswerOf<'list_workflows'>>(`/workflows${query({ limit: 1000 })}`);

/** Requests a stored workflow and its version. */
export async function storedWorkflow(name: string): Promise<{ workflow: AnswerOf<'get_workflow'>; version: string | undefined }> {
  let version: string | undefined;
  const answered = (headers: Headers): string | undefined => (version = headers.get('etag') ?? undefined);
  const workflow = await ask<AnswerOf<'get_workflow'>>(`/workflows/${encodeURIComponent(name)}`, { answered });
  return { workflow, version };
}

/** Stores a text in place of the known version, or as a new workflow. Returns the new version. */
export async function keep(name: string, source: Source, known: string | undefined): Promise<string | undefined> {
  let version: string | undefined;
  const headers: Record<string, string> = known === undefined ? { 'If-None-Match': '*' } : { 'If-Match': `"${known.replaceAll('"', '')}"` };
  await ask(`/workflows/${encodeURIComponent(name)}`, { method: 'PUT', body: source, headers, answered: (sent) => (version = sent.get('etag') ?? undefined) });
  return version ?? (await storedWorkflow(name)).version;
}
