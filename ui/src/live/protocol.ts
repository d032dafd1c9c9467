// The messages between tabs and the holder of the event stream.
import type { Hello, RunRow, StatusReport } from '../api/types';

/** `*` is the list of runs; any other topic is the id of a run. */
export type Topic = string;

export type Connection = 'connecting' | 'connected' | 'reconnecting' | 'signed-out';

export type ToHub = { kind: 'topics'; topics: Topic[] } | { kind: 'alive' } | { kind: 'bye' } | { kind: 'wake' };

export type FromHub =
  | { kind: 'connection'; connection: Connection }
  | { kind: 'hello'; hello: Hello; again: boolean }
  | { kind: 'rows'; rows: RunRow[] }
  | { kind: 'status'; status: StatusReport };
