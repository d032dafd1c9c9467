// The word, the tone and the shape of a status. A status is never shown by colour alone.
import type { RunStatus, Status } from '../api/types';

export interface Look {
  word: string;
  tone: 'run' | 'wait' | 'hold' | 'good' | 'bad' | 'off';
  /** The SVG path of an icon in a 16 × 16 box. */
  icon: string;
}

const LOOKS: Record<string, Look> = {
  Running: { word: 'Running', tone: 'run', icon: 'M5 3l8 5-8 5z' },
  Waiting: { word: 'Waiting', tone: 'wait', icon: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 2v4.2l3 1.8' },
  Paused: { word: 'Paused', tone: 'hold', icon: 'M4 3h3v10H4zM9 3h3v10H9z' },
  Succeeded: { word: 'Succeeded', tone: 'good', icon: 'M2.5 8.5l3.5 3.5 7.5-8' },
  SucceededWithFailures: { word: 'Succeeded with failures', tone: 'hold', icon: 'M1.5 9l3 3 5.500-7M13 3.500v6M13 12v.5' },
  Failed: { word: 'Failed', tone: 'bad', icon: 'M3.5 3.5l9 9M12.5 3.5l-9 9' },
  TimedOut: { word: 'Timed out', tone: 'bad', icon: 'M4 2h8L8 8zM4 14h8L8 8z' },
  Cancelled: { word: 'Cancelled', tone: 'off', icon: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM4 12L12 4' },
  Skipped: { word: 'Skipped', tone: 'off', icon: 'M2 4l6 4-6 4zM8 4l6 4-6 4z' },
};

/** The label of a run whose calls are answered by stubs. */
export const STUBS = 'windlass.stubs';

const OTHER: Look = { word: 'Not run', tone: 'off', icon: 'M3 8h10' };

export function look(status: Status | string | undefined): Look {
  if (status === undefined) return OTHER;
  return LOOKS[status] ?? { ...OTHER, word: status };
}

/** Returns whether an icon is drawn as lines; other icons are filled. */
export const stroked = (status: string | undefined): boolean =>
  status === undefined || !['Running', 'Paused', 'TimedOut', 'Skipped'].includes(status);

/** Returns the status that users see: for a run that succeeded, also whether any of its actions failed. */
export const stateOfRun = (run: { status: RunStatus; failed_actions?: number }): string =>
  run.status === 'Succeeded' && (run.failed_actions ?? 0) > 0 ? 'SucceededWithFailures' : run.status;

/** Returns the same for an iteration or a foreach. If it succeeded, an error means that an action or an item failed. */
export const stateOfPart = (part: { status: Status; error?: string | null }): string =>
  part.status === 'Succeeded' && typeof part.error === 'string' ? 'SucceededWithFailures' : part.status;

export const STATUSES = ['Running', 'Waiting', 'Paused', 'Succeeded', 'SucceededWithFailures', 'Failed', 'TimedOut', 'Cancelled'] as const;

export const ended = (status: string | undefined): boolean =>
  status === 'Succeeded' || status === 'Failed' || status === 'TimedOut' || status === 'Cancelled';

/** The meaning of the letters of `recent`. */
export const LETTERS: Record<string, string> = {
  s: 'Succeeded',
  w: 'SucceededWithFailures',
  f: 'Failed',
  t: 'TimedOut',
  c: 'Cancelled',
  k: 'Skipped',
};
