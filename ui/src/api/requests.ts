// Every request of the console, one function each.
import { ask, post, query } from './http';
import type { AnswerOf, BodyOf, BulkVerb, Json, QueryOf } from './types';

const run = (id: string): string => `/runs/${encodeURIComponent(id)}`;

export const me = () => ask<AnswerOf<'get_me'>>('/me');
export const signIn = (token: string) => ask<void>('/session', { method: 'POST', token, isChange: false });
export const redeem = (ticket: string) => ask<void>('/session', { method: 'POST', body: { ticket }, isChange: false });
export const signOut = () => ask<void>('/session', { method: 'DELETE', isChange: false });

export type RunFilter = Pick<QueryOf<'list_runs'>, 'status' | 'workflow' | 'text' | 'label' | 'since' | 'until'>;

export const listRuns = (
  filter: RunFilter,
  page: Pick<QueryOf<'list_runs'>, 'offset' | 'limit' | 'facets'>,
  signal?: AbortSignal,
) => ask<AnswerOf<'list_runs'>>(`/runs${query({ detail: true, ...filter, ...page })}`, { signal });

export const bulk = (what: BulkVerb, runs: string[]) => post<'bulk_runs'>('/runs/bulk', { do: what, runs });

export const status = (id: string) => ask<AnswerOf<'get_run'>>(run(id));
export const loops = (id: string) => ask<AnswerOf<'get_loops'>>(`${run(id)}/loops`);
export const source = (id: string) => ask<AnswerOf<'get_source'>>(`${run(id)}/source`);
export const places = (id: string) => ask<AnswerOf<'get_places'>>(`${run(id)}/places?limit=1000`);

export const printed = (id: string) => ask<AnswerOf<'get_printed'>>(`${run(id)}/printed`);

export const strip = (
  id: string,
  loop: string,
  part: Omit<QueryOf<'get_strip'>, 'loop'>,
  signal?: AbortSignal,
) => ask<AnswerOf<'get_strip'>>(`${run(id)}/strip${query({ loop, ...part })}`, { signal });

export type IterationFilter = Omit<QueryOf<'list_iterations'>, 'loop'>;

export const iterations = (id: string, loop: string, filter: IterationFilter, signal?: AbortSignal) => {
  const { changed, ...rest } = filter;
  const change = changed === undefined ? '' : `&changed=${encodeURIComponent(changed)}`;
  return ask<AnswerOf<'list_iterations'>>(`${run(id)}/iterations${query({ loop, ...rest })}${change}`, { signal });
};

/** Requests a whole iteration; without a path, what the run did outside of its loops. */
export const iteration = (id: string, path: string, signal?: AbortSignal) =>
  ask<AnswerOf<'get_iteration'>>(`${run(id)}/iteration${query({ path: path || undefined })}`, { signal });

/** Returns the address for downloading a value that is too large to be shown. */
export const wholeValue = (id: string, path: string, pointer: string): string =>
  `/v1${run(id)}/iteration${query({ path: path || undefined, pointer })}`;

export const difference = (id: string, from: string, to: string, signal?: AbortSignal) =>
  ask<AnswerOf<'get_difference'>>(`${run(id)}/difference${query({ from, to })}`, { signal });

export const graph = (id: string, open: string, root: string) =>
  ask<AnswerOf<'get_graph'>>(`${run(id)}/graph${query({ open, root })}`);

export const events = (id: string, after: number, limit: number, signal?: AbortSignal) =>
  ask<AnswerOf<'get_history'>>(
    `${run(id)}/history${query({ events: true, iterations: 0, after, limit })}`,
    { signal },
  );


export const pause = (id: string) => post<'pause_run'>(`${run(id)}/pause`);
export const resume = (id: string) => post<'resume_run'>(`${run(id)}/resume`);
export const cancel = (id: string) => post<'cancel_run'>(`${run(id)}/cancel`);
export const retry = (id: string, from?: string) =>
  post<'retry_run'>(`${run(id)}/retry`, from === undefined ? {} : { from });
/** `received` is that of the wait to answer. With it, the signal answers no later wait. */
export const signal = (id: string, name: string, payload: Json, received?: BodyOf<'signal_run'>['received']) =>
  post<'signal_run'>(`${run(id)}/signal`, { name, payload, received });
