// What the server answers, as the console reads it. `docs/openapi.json` describes all of it.

export type RunStatus = 'Running' | 'Waiting' | 'Paused' | 'Succeeded' | 'Failed' | 'TimedOut' | 'Cancelled';
export type Status = RunStatus | 'Skipped';
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface ErrorReport {
  kind: string;
  message: string;
  code?: string | null;
  action?: string | null;
  loop?: string | null;
  iteration?: number | null;
  line?: number | null;
}

export interface LastError {
  kind: string;
  message: string;
  code?: string | null;
  at: string;
}

/** A place in the line of the calls to a host, for its rate limit or because it is down. */
export interface RateLimitWait {
  host: string;
  position: number;
  begins_at: string;
  /** How many calls failed in a row, if the host counts as down. */
  failures?: number;
}

/** A field of a form: a member of an answer. */
export interface FormField {
  name: string;
  label: string;
  type: 'text' | 'boolean' | 'integer' | 'number' | 'options' | 'json';
  options?: unknown[];
  required: boolean;
  default?: unknown;
}

/** What people are asked. */
export interface Question {
  title: string | null;
  choices: string[];
  fields: FormField[];
}

export interface CurrentActivity {
  /** The iteration or item that it is directly in. */
  inside?: string | null;
  /** It waits for a place among the calls. */
  queued?: boolean;
  /** The line of its host that it waits in. */
  rate_limit?: RateLimitWait;
  action: string;
  title?: string | null;
  type?: string | null;
  loop?: string | null;
  waits_for: string;
  /** The run whose end it waits for, of a run that waits for its turn, and why that one stopped. */
  awaits_run?: { run: string; stopped?: 'paused' | 'parked' | 'left' | null } | null;
  attempt?: number | null;
  max_attempts?: number | null;
  due_at?: string | null;
  since?: string | null;
  signal?: string | null;
  /** How many of these signals were received before. */
  received?: number;
  /** What people are asked: the signal is the answer. */
  question?: Question;
  method?: string | null;
  uri?: string | null;
  detail?: string | null;
  /** The run that a `workflow` action waits for. */
  child?: string | null;
  last_error?: LastError | null;
}

export interface LoopCell {
  path: string;
  name: string;
  title?: string | null;
  iteration: number;
  iterations_completed: number;
  max_iterations?: number | null;
  recent?: string;
}

export interface RunRow {
  run: string;
  workflow: string;
  status: RunStatus;
  started_at: string;
  updated_at: string;
  next_due_at?: string | null;
  labels: Record<string, string>;
  failed_actions?: number;
  commit: number;
  loop?: LoopCell | null;
  waits_for?: CurrentActivity | null;
  error?: ErrorReport | null;
  due_at?: string | null;
}

export interface RunList {
  runs: RunRow[];
  more: number;
  total?: number;
  next?: string | null;
  facets?: {
    status: Record<string, number>; workflow: Record<string, number>;
    /** Of the last 24 hours, by the beginning of each and by status. */
    hour: Record<string, Record<string, number>>;
  } | null;
}

export interface ConditionReport {
  text: string;
  value?: boolean | null;
  reads: { name: string; value: Json }[];
}

export interface Changed {
  path: string;
  from: Json;
  to: Json;
}

/** What a loop used of a limit: `tokens 12,300 of 50,000`. */
export interface BudgetReport {
  budget: 'tokens' | 'cost';
  used: number;
  limit: number;
  text: string;
}

export interface LoopReport {
  path: string;
  name: string;
  title?: string | null;
  type: string;
  iteration: number;
  iterations_completed: number;
  max_iterations?: number | null;
  budgets?: BudgetReport[];
  started_at: string;
  next_due_at?: string | null;
  deadline?: string | null;
  condition?: ConditionReport | null;
}

/** An item of a foreach that is under way, from 0. */
export interface Lane {
  item: number;
  path: string;
  since: string;
  attempt?: number | null;
}

export interface StatusReport {
  /** Whether it starts runs of other workflows. */
  starts_runs?: boolean;
  at: string;
  run: string;
  workflow: string;
  status: RunStatus;
  owned: boolean;
  started_at: string;
  updated_at: string;
  next_due_at?: string | null;
  commit: number;
  dialect?: string | null;
  file?: string | null;
  labels: Record<string, string>;
  failed_actions?: number;
  loops: LoopReport[];
  forks: {
    name: string; type: string; ended: number; running: number; total: number;
    /** Of a foreach: its path, and the items under way. */
    path?: string; lanes?: Lane[];
    /** The iteration or item that it is directly in. */
    inside?: string;
  }[];
  doing: CurrentActivity[];
  outage?: string | null;
  pause?: { reason: string; limit?: string | null; loop?: string | null; since: string } | null;
  outcome?: {
    status: Status;
    output: Json;
    error?: ErrorReport | null;
    at: string;
    limits?: { loop: string; limit: string; iterations: number; times: number }[];
    failed_items?: { failed: number; message: string }[];
  } | null;
}

export interface LoopEntry {
  path: string;
  name: string;
  title?: string | null;
  type: string;
  iterations: number;
  max_iterations?: number | null;
  status: string;
  started_at: string;
  ended_at?: string | null;
}

export interface Counts {
  succeeded: number;
  /** Of these, those in which an action failed. */
  succeeded_with_failures: number;
  failed: number;
  timed_out: number;
  cancelled: number;
  skipped: number;
  retried: number;
}

export interface StripCell extends Counts {
  from: number;
  to: number;
  min_ms?: number | null;
  mean_ms?: number | null;
  max_ms?: number | null;
  condition?: boolean | null;
}

export interface Strip {
  loop: string;
  title?: string | null;
  type: string;
  iterations: number;
  max_iterations?: number | null;
  budgets?: BudgetReport[];
  running: boolean;
  from: number;
  to: number;
  exact: boolean;
  forgotten: number;
  totals: Counts;
  cells: StripCell[];
  failed: number[];
  failed_more?: boolean | number;
  messages: { message: string; count: number; first: number; last: number }[];
}

export interface IterationRow {
  path: string;
  iteration: number;
  status: Status;
  condition?: boolean | null;
  started_at: string;
  ended_at?: string | null;
  duration_ms?: number | null;
  error?: string | null;
  attempts?: number | null;
  result?: Json;
  kept?: 'whole' | 'row' | 'summary';
}

export interface IterationPage {
  iterations: IterationRow[];
  next?: number | null;
}

export interface Attempt {
  attempt: number;
  started_at: string;
  ended_at?: string | null;
  error?: string | null;
}

export interface ActionRow {
  path: string;
  action: string;
  item?: number | null;
  status: Status;
  started_at?: string | null;
  ended_at?: string | null;
  key?: string | null;
  attempts: Attempt[];
  inputs?: Json;
  outputs?: Json;
  error?: string | null;
}

export interface Iteration {
  path: string;
  loop?: string | null;
  iteration: number;
  status: Status;
  condition?: boolean | null;
  error?: string | null;
  started_at: string;
  ended_at?: string | null;
  kept: 'whole' | 'row' | 'summary';
  result?: Json;
  variables?: Record<string, Json>;
  actions: ActionRow[];
  waits: { from: string; to: string; kind: string }[];
}

export interface Difference {
  from: string;
  to: string;
  changed: Changed[];
  unchanged: number;
}

export interface GraphNode {
  id: string;
  path: string;
  name: string;
  action?: string | null;
  title?: string | null;
  kind: string;
  type?: string | null;
  summary?: string | null;
  line?: number | null;
  file?: number | null;
  parent?: string | null;
  frame: boolean;
  foldable: boolean;
  condition?: string | null;
  limits?: { count?: string | null; timeout?: string | null; delay?: string | null; retry?: string | null } | null;
  ports?: { name: string; side: 'in' | 'out'; x: number; y: number }[];
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  label?: string | null;
  kind: string;
  back?: boolean;
  from_port?: string | null;
  to_port?: string | null;
  points: [number, number][];
  label_at?: [number, number] | null;
}

export interface Graph {
  width: number;
  height: number;
  root?: GraphNode | null;
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export interface Source {
  dialect: string;
  files: { path: string; text: string }[];
}

export interface HistoryEvent {
  sequence: number;
  at: string;
  event: string;
  [member: string]: Json;
}

export interface Place {
  path: string;
  type: string;
}

export interface BulkAnswer {
  done: { run: string; status?: RunStatus; new_run?: string }[];
  failed: { run: string; code: string; detail: string }[];
}

export interface Hello {
  server_started_at?: string;
  version?: string;
  access?: string;
  outage?: string | null;
}
