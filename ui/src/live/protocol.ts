// The messages between tabs and the holder of the event stream.
import type { Hello, RunRow, StatusReport } from '../api/types';

/** `*` is the list of runs; any other topic is the id of a run. */
export type Topic = string;

export type Connection = 'connecting' | 'connected' | 'reconnecting' | 'signed-out';

/**
 * What came before the greeting of the server: the `start` of the first stream, the `loss` of the server, or neither
 * (a tab `join`s a stream, or the stream has other topics now). Changes before the first stream are not sent.
 */
export type Beginning = 'start' | 'loss' | 'join';

export type ToHub = { kind: 'topics'; topics: Topic[] } | { kind: 'alive' } | { kind: 'bye' } | { kind: 'wake' };

export type FromHub =
  | { kind: 'connection'; connection: Connection }
  | { kind: 'hello'; hello: Hello; after: Beginning }
  | { kind: 'rows'; rows: RunRow[] }
  | { kind: 'gone'; runs: string[] }
  | { kind: 'status'; status: StatusReport };
