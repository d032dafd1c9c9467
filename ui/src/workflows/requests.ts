// The requests of the pages of stored workflows.
import { ask, post, query } from '../api/http';
import type { AnswerOf, Schemas } from '../api/types';

export type Summary = Schemas['WorkflowSummary'];
export type Input = Schemas['InputReport'];
export type StoredWorkflow = Schemas['WorkflowReport'];
export type Version = Schemas['VersionReport'];
export type Schedule = Schemas['ScheduleReport'];
export type StateValue = Schemas['StateReport'];

const of = (name: string): string => `/workflows/${encodeURIComponent(name)}`;

export const list = (after?: string) => ask<AnswerOf<'list_workflows'>>(`/workflows${query({ after })}`);
export const storedWorkflow = (name: string, version?: string) => ask<StoredWorkflow>(`${of(name)}${query({ version })}`);
export const versions = async (name: string): Promise<Version[]> => (await ask<AnswerOf<'get_workflow_versions'>>(`${of(name)}/versions`)).versions;
export const schedule = (name: string) => ask<Schedule>(`${of(name)}/schedule`);
export const pauseSchedule = (name: string) => post<'pause_schedule'>(`${of(name)}/schedule/pause`);
export const resumeSchedule = (name: string) => post<'resume_schedule'>(`${of(name)}/schedule/resume`);
export const stateValues = async (workflow: string): Promise<StateValue[]> =>
  (await ask<AnswerOf<'list_state'>>(`/state${query({ workflow })}`)).values;
export const remove = (name: string) => ask<unknown>(of(name), { method: 'DELETE' });
export const start = (body: Pick<Schemas['StartRun'], 'workflow' | 'input' | 'run'>) => post<'start_run'>('/runs', body);
