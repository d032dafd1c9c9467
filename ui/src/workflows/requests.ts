// What the pages of kept workflows ask the server.
import { ask, query } from '../api/http';
import type { Json } from '../api/types';

export interface Summary {
  name: string;
  dialect: string;
  file: string;
  stored_at: string;
}

export interface Input {
  name: string;
  type?: string | null;
  required: boolean;
  default?: Json;
}

export interface Kept {
  name: string;
  title: string;
  dialect: string;
  stored_at: string;
  inputs: Input[];
  files: { path: string; text: string }[];
}

export interface Version {
  version: string;
  stored_at: string;
  current: boolean;
  runs: Record<string, number>;
}

export interface Schedule {
  schedule?: string | null;
  timezone?: string | null;
  overlap?: string | null;
  missed?: string | null;
  last?: string | null;
  next: string[];
  missed_times: number;
  last_missed?: string | null;
  paused_since?: string | null;
}

/** A value that a workflow has between its runs. */
export interface StateValue {
  name: string;
  value: Json;
  version: number;
  written_at: string;
  run?: string | null;
  guest: boolean;
}

const of = (name: string): string => `/workflows/${encodeURIComponent(name)}`;

export const list = (after?: string) => ask<{ workflows: Summary[]; next?: string | null }>(`/workflows${query({ after })}`);
export const kept = (name: string, version?: string) => ask<Kept>(`${of(name)}${query({ version })}`);
export const versions = async (name: string): Promise<Version[]> => (await ask<{ versions: Version[] }>(`${of(name)}/versions`)).versions;
export const schedule = (name: string) => ask<Schedule>(`${of(name)}/schedule`);
export const pauseSchedule = (name: string) => ask<Schedule>(`${of(name)}/schedule/pause`, { method: 'POST' });
export const resumeSchedule = (name: string) => ask<Schedule>(`${of(name)}/schedule/resume`, { method: 'POST' });
export const stateValues = async (workflow: string): Promise<StateValue[]> =>
  (await ask<{ values: StateValue[] }>(`/state${query({ workflow })}`)).values;
export const remove = (name: string) => ask<unknown>(of(name), { method: 'DELETE' });
export const start = (body: { workflow: string; input: Record<string, Json>; run?: string }) => ask<{ run: string }>('/runs', { method: 'POST', body });
