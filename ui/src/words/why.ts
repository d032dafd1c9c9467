// Describes in one line why a run is in its current state.
import type { ConditionReport, CurrentActivity, LoopReport, RateLimitWait, RunRow, StatusReport } from '../api/types';
import { runAddress } from '../shell/route.svelte';
import { look, stateOfRun } from './status';
import { clockTime, countdown, duration } from './time';
import { brief, count, cut, line, number } from './text';

/** The name of the signal with which a run waits for its turn. */
const TURN = 'windlass.turn';

/** A piece of the line. `code` is shown as code. */
export interface Piece {
  text: string;
  /** The address of a link. */
  href?: string;
  code?: boolean;
  strong?: boolean;
}

type Part = string | Piece;

/** The limits of a loop except the number of its iterations. */
const LIMITS: Record<string, string> = {
  timeout: 'its time limit', tokens: 'its limit of tokens', cost: 'its limit of costs', unchanged: 'its limit without a change',
};

const code = (text: string): Piece => ({ text: line(text), code: true });
/** Returns a message whose names in backticks are shown as code. */
const message = (text: string): Part[] => cut(text, 300).split('`').map((part, index) => (index % 2 === 1 ? code(part) : line(part)));
const runLink = (run: string): Piece => ({ text: line(run), href: runAddress(run) });
const strong = (text: string): Piece => ({ text: line(text), strong: true });

export function why(report: StatusReport, now: number): Piece[] {
  const parts = report.outcome ? outcome(report, now) : [...stopped(report, now), ...going(report, now)];
  return parts.map((part) => (typeof part === 'string' ? { text: part } : part));
}

function outcome(report: StatusReport, now: number): Part[] {
  const end = report.outcome;
  if (!end) return [];
  const took = duration(Date.parse(end.at) - Date.parse(report.started_at));
  const when = clockTime(end.at, now);
  const error = end.error;
  if (!error) {
    const limits = (end.limits ?? []).flatMap((limit): Part[] => [
      ' Loop ', code(limit.loop), ` ended at its limit (${limit.limit}) after ${count(limit.iterations, 'iteration')}.`,
    ]);
    const word = end.status === 'Cancelled' ? 'Cancelled' : look(stateOfRun(report)).word;
    const failed = report.failed_actions ? ` ${count(report.failed_actions, 'action')} failed without failing the run.` : '';
    const items = (end.failed_items ?? []).flatMap((one) => [' ', ...message(one.message), '.']);
    return [strong(word), ` at ${when} after ${took}.`, failed, ...items, ...limits];
  }
  const place: Part[] = [];
  if (error.action) place.push(' at ', code(error.action));
  if (error.loop) {
    const iteration = error.iteration === null || error.iteration === undefined ? '' : ` (iteration ${number(error.iteration + 1)})`;
    place.push(' in ', code(error.loop), iteration);
  }
  const word = { TimedOut: 'Timed out', Cancelled: 'Cancelled' }[end.status as string] ?? 'Failed';
  const number_ = error.code ? ` ${error.code}` : '';
  return [strong(word), ...place, ` after ${took}: `, `${error.kind}${number_}: `, ...message(error.message)];
}

function stopped(report: StatusReport, now: number): Part[] {
  const parts: Part[] = [];
  const parked = report.labels['windlass.parked'];
  if (parked !== undefined) parts.push(strong('Parked'), `: ${cut(line(parked), 200)} Resume it when the cause is fixed. `);
  if (report.outage) parts.push(strong('Stopped'), `: ${line(report.outage)}. It continues automatically when the store accepts writes again. `);
  if (!report.owned) parts.push(strong('Stopped'), ': no server is running; resume it with ', code(`windlass resume ${report.run}`), '. ');
  if (report.pause) {
    const since = clockTime(report.pause.since, now);
    if (report.pause.reason === 'limit') {
      const what = LIMITS[report.pause.limit ?? ''] ?? 'its limit of iterations';
      parts.push(strong('Paused'), ` since ${since}: `, code(report.pause.loop ?? 'a loop'), ` reached ${what}; resuming grants a new budget. `);
    } else {
      parts.push(strong('Paused'), ` since ${since} by a user. `);
    }
  }
  return parts;
}

function going(report: StatusReport, time: number): Part[] {
  // While a run is paused, its clocks stop.
  const now = report.pause ? Date.parse(report.pause.since) : time;
  const first = nearest(report.doing);
  if (!first) return report.pause ? [] : [strong('Running'), '.'];
  const inner = report.loops.find((one) => one.path === first.loop) ?? report.loops.at(-1);
  const parts = [...activity(first, now), ...(inner ? place(inner, first.waits_for === 'delay') : []), '; '];
  if (inner?.deadline) parts.push(`deadline in ${duration(Date.parse(inner.deadline) - now)}; `);
  if (report.doing.length > 1) parts.push(`${count(report.doing.length - 1, 'more branch', 'more branches')} under way; `);
  return ending(parts);
}

function ending(parts: Part[]): Part[] {
  const last = parts.pop();
  if (typeof last === 'string') parts.push(last.replace(/; $/, '.'));
  return parts;
}

/** Returns a call or a next step if there is one, else the wait that is due first, else the first activity. */
function nearest(doing: CurrentActivity[]): CurrentActivity | undefined {
  const moving = doing.find((one) => one.waits_for === 'call' || one.waits_for === 'next');
  if (moving) return moving;
  const due = doing.filter((one) => one.due_at).sort((a, b) => (a.due_at ?? '').localeCompare(b.due_at ?? ''));
  return due[0] ?? doing[0];
}

function activity(doing: CurrentActivity, now: number): Part[] {
  const name = code(doing.title ?? doing.action);
  const left = doing.due_at ? Date.parse(doing.due_at) - now : 0;
  const due = left < 500 ? '' : countdown(left);
  const error = doing.last_error;
  const last: Part[] = error
    ? [` (the last one failed: ${cut(line(`${error.code ?? error.kind} ${error.message}`), 120)})`]
    : [];
  const attempt = doing.attempt && doing.max_attempts ? `attempt ${doing.attempt} of ${doing.max_attempts}` : '';
  switch (doing.waits_for) {
    case 'delay':
      return [strong(`Waiting ${due}`.trim()), ' for the next check of ', code(doing.loop ?? doing.action)];
    case 'sleep':
      return [strong(`Waiting ${due}`.trim()), ' at ', name];
    case 'retry':
      return [strong(`Waiting ${due}`.trim()), ' before ', attempt || 'the next attempt', ' of ', name, ...last];
    case 'signal':
      if (doing.signal === TURN) return awaits(doing);
      if (doing.question) return [strong('Waiting'), ' at ', name, ' for an answer', ...(due ? [`, for ${due} more`] : [])];
      return [strong('Waiting'), ' at ', name, ' for the signal ', code(doing.signal ?? ''), ...(due ? [`, for ${due} more`] : [])];
    case 'limit':
      return [strong('Waiting'), ' at ', name, ' to be resumed with a new budget'];
    case 'call':
      return call(doing, name, attempt, last, now);
    default:
      return [strong('Running'), ' ', name];
  }
}

function call(doing: CurrentActivity, name: Piece, attempt: string, last: Part[], now: number): Part[] {
  const wait = doing.rate_limit;
  if (!doing.since && wait) return [strong('Waiting'), ' at ', name, ...turn(wait, now), ...last];
  if (!doing.since) return [strong('Waiting'), ' at ', name, ' until the limit on calls allows it to start', ...last];
  if (doing.child) return [strong('Waiting'), ' at ', name, ' for the run ', runLink(doing.child), ...last];
  const what = [doing.method, doing.uri ?? doing.detail].filter(Boolean).join(' ');
  const parts: Part[] = [strong('Running'), ' ', name];
  if (what) parts.push(' (', code(cut(what, 90)), ')');
  parts.push(` for ${duration(now - Date.parse(doing.since))}`);
  if (attempt && (doing.attempt ?? 1) > 1) parts.push(`, ${attempt}`, ...last);
  return parts;
}

/** Returns which run a run waits for until it is its turn. */
function awaits(doing: CurrentActivity): Part[] {
  const earlier = doing.awaits_run;
  if (!earlier) return [strong('Waiting'), ' for earlier runs with the same concurrency key'];
  const why = { paused: ', which is paused', parked: ', which is parked', left: ', which no process executes' };
  return [strong('Waiting'), ' for the run ', runLink(earlier.run), ' with the same concurrency key', earlier.stopped ? why[earlier.stopped] : ''];
}

/** Returns why a call waits for its host. */
function turn(wait: RateLimitWait, now: number): Part[] {
  const why: Part[] = wait.failures
    ? [' because ', code(wait.host), ` is down: ${number(wait.failures)} calls failed in a row`]
    : [' for the rate limit of ', code(wait.host)];
  const left = Date.parse(wait.begins_at) - now;
  return [...why, `, number ${number(wait.position)} in line`, left < 500 ? '' : `, about ${countdown(left)}`];
}

/** Returns the iteration of a loop. Between two iterations, this is the next one, and the loop was named before. */
function place(inner: LoopReport, between: boolean): Part[] {
  const most = inner.max_iterations ? ` of ${number(inner.max_iterations)}` : '';
  const at = number(between ? inner.iterations_completed + 1 : inner.iteration);
  const parts: Part[] = between
    ? [` (iteration ${at}${most}`]
    : [' (iteration ', `${at}${most}`, ' of ', code(inner.title ?? inner.path)];
  for (const budget of inner.budgets ?? []) parts.push(`; ${line(budget.text)}`);
  const condition = inner.condition;
  if (condition) parts.push('; ', ...conditionWords(condition));
  parts.push(')');
  return parts;
}

/** Returns the condition with the values that it reads: `check.status` is "running", wants …. */
export function conditionWords(condition: ConditionReport): Part[] {
  const reads = condition.reads.slice(0, 3).flatMap((read, index): Part[] => [
    index === 0 ? '' : ', ', code(read.name), ' is ', brief(read.value, 40),
  ]);
  if (reads.length === 0) return ['until ', code(cut(condition.text, 100))];
  const value = condition.value === null || condition.value === undefined ? '' : ` is ${condition.value}`;
  return [...reads, ', so ', code(cut(condition.text, 80)), value || ' decides'];
}

/** Returns the same in a few words, for the list of runs. */
export function waits(row: RunRow, now: number): string {
  const doing = row.waits_for;
  if (row.status === 'Paused' && doing?.waits_for !== 'limit') return 'paused';
  if (!doing) return '';
  const name = line(doing.title ?? doing.action);
  const at = doing.due_at ?? row.next_due_at;
  const due = at ? countdown(Date.parse(at) - now) : '';
  switch (doing.waits_for) {
    case 'delay':
      return due === 'now' ? 'next check now' : `next check in ${due}`;
    case 'sleep':
      return `${name}: ${due}`;
    case 'retry':
      return `${name}: attempt ${doing.attempt ?? 1} ${due === 'now' ? due : `in ${due}`}`;
    case 'signal':
      if (doing.signal === TURN) return 'earlier runs with the same key';
      return doing.question ? `an answer: ${cut(line(doing.question.title ?? doing.action), 60)}` : `signal ${line(doing.signal ?? '')}`;
    case 'limit':
      return 'a new budget';
    case 'call':
      if (doing.since) return `${name} for ${duration(now - Date.parse(doing.since))}`;
      return `${name}: ${doing.rate_limit ? `rate limit of ${doing.rate_limit.host}` : 'limit on calls'}`;
    default:
      return name;
  }
}
