// Every request of the console, one function each.
import { ask, query } from './http';
import type {
  BulkAnswer,
  Difference,
  Graph,
  HistoryEvent,
  Iteration,
  IterationPage,
  LoopEntry,
  Place,
  RunList,
  RunStatus,
  Source,
  StatusReport,
  Strip,
} from './types';

const run = (id: string): string => `/runs/${encodeURIComponent(id)}`;

export const me = () => ask<{ access: string }>('/me');
export const signIn = (token: string) => ask<void>('/session', { method: 'POST', token });
export const redeem = (ticket: string) => ask<void>('/session', { method: 'POST', body: { ticket } });
export const signOut = () => ask<void>('/session', { method: 'DELETE' });

export interface RunFilter {
  status?: string;
  workflow?: string;
  text?: string;
  label?: string;
  since?: string;
  until?: string;
}

export const listRuns = (
  filter: RunFilter,
  page: { offset?: number; limit?: number; facets?: boolean },
  signal?: AbortSignal,
) => ask<RunList>(`/runs${query({ detail: true, ...filter, ...page })}`, { signal });

export const bulk = (what: string, runs: string[]) =>
  ask<BulkAnswer>('/runs/bulk', { method: 'POST', body: { do: what, runs } });

export const status = (id: string) => ask<StatusReport>(run(id));
export const loops = (id: string) => ask<{ loops: LoopEntry[] }>(`${run(id)}/loops`);
export const source = (id: string) => ask<Source>(`${run(id)}/source`);
export const places = (id: string) => ask<{ places: Place[]; cut: boolean }>(`${run(id)}/places?limit=1000`);

export const printed = (id: string) => ask<{ lines: { action: string; stream: string; text: string }[] }>(`${run(id)}/printed`);

export const strip = (
  id: string,
  loop: string,
  part: { from?: number; to?: number; buckets?: number },
  signal?: AbortSignal,
) => ask<Strip>(`${run(id)}/strip${query({ loop, ...part })}`, { signal });

export interface IterationFilter {
  from?: number;
  to?: number;
  status?: string;
  changed?: string;
  text?: string;
  limit?: number;
  order?: 'asc' | 'desc';
}

export const iterations = (id: string, loop: string, filter: IterationFilter, signal?: AbortSignal) => {
  const { changed, ...rest } = filter;
  const change = changed === undefined ? '' : `&changed=${encodeURIComponent(changed)}`;
  return ask<IterationPage>(`${run(id)}/iterations${query({ loop, ...rest })}${change}`, { signal });
};

/** One iteration whole; without a path, what the run did outside of its loops. */
export const iteration = (id: string, path: string, signal?: AbortSignal) =>
  ask<Iteration>(`${run(id)}/iteration${query({ path: path || undefined })}`, { signal });

/** Where a value that is too large to be shown is downloaded from. */
export const wholeValue = (id: string, path: string, pointer: string): string =>
  `/v1${run(id)}/iteration${query({ path: path || undefined, pointer })}`;

export const difference = (id: string, from: string, to: string, signal?: AbortSignal) =>
  ask<Difference>(`${run(id)}/difference${query({ from, to })}`, { signal });

export const graph = (id: string, open: string, root: string) =>
  ask<Graph>(`${run(id)}/graph${query({ open, root })}`);

export const events = (id: string, after: number, limit: number, signal?: AbortSignal) =>
  ask<{ events: HistoryEvent[] | null; forgotten_events?: number }>(
    `${run(id)}/history${query({ events: true, iterations: 0, after, limit })}`,
    { signal },
  );

type State = { run: string; status: RunStatus };
const post = <Answer>(path: string, body?: unknown) => ask<Answer>(path, { method: 'POST', body });

export const pause = (id: string) => post<State>(`${run(id)}/pause`);
export const resume = (id: string) => post<State>(`${run(id)}/resume`);
export const cancel = (id: string) => post<State>(`${run(id)}/cancel`);
export const retry = (id: string, from?: string) =>
  post<{ run: string }>(`${run(id)}/retry`, from === undefined ? {} : { from });
/** With `received` of the wait that it answers, it answers no later one. */
export const signal = (id: string, name: string, payload: unknown, received?: number) =>
  post<State>(`${run(id)}/signal`, { name, payload, received });
