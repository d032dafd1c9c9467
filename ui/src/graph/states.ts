// What each node of the graph shows about the chosen iteration: its state, or that it did not run there.
import type { GraphNode, Status } from '../api/types';
import { isLoop, ownActions, type RunModel } from '../run/model.svelte';
import { iterationPath, parse } from '../run/paths';
import { ended, stateOfPart } from '../words/status';

export interface NodeState {
  status?: string;
  /** `not`: it did not run in this iteration. `yet`: it may still run. `unknown`: its steps are not stored. */
  absent?: 'not' | 'yet' | 'unknown';
  attempts?: number;
  /** For a loop, its path in the run. */
  loop?: string;
}

/** Returns the path of the iteration that contains a node: empty outside of loops, none if no iteration was entered. */
export function around(model: RunModel, node: GraphNode): string | undefined {
  const loops = parse(node.path).slice(0, -1);
  if (loops.length === 0) return '';
  const loop = model.instance(loops.map((step) => step.name).join('/'));
  const number = loop === undefined ? undefined : model.shown(loop);
  return loop === undefined || number === undefined ? undefined : iterationPath(loop, number);
}

export function stateOf(model: RunModel, node: GraphNode): NodeState {
  if (node.kind === 'start' || node.kind === 'end' || node.kind === 'break') return {};
  const place = around(model, node);
  if (place === undefined) return { absent: model.done ? 'not' : 'yet' };
  const state = isLoop(node) ? loopState(model, node) : stepState(model, node, place);
  return state;
}

function stepState(model: RunModel, node: GraphNode, place: string): NodeState {
  const name = node.action ?? node.name;
  const iteration = model.iterations.get(place);
  const rows = ownActions(iteration).filter((row) => row.action === name || row.action === node.name);
  const doing = underWay(model, node, place);
  if (doing) return { status: doing, attempts: Math.max(...rows.map((row) => row.attempts.length), 1) };
  const row = rows.find((one) => one.status === 'Failed') ?? rows.at(-1);
  if (row) return { status: row.status, attempts: row.attempts.length };
  if (!iteration) return { absent: 'yet' };
  if (iteration.stored !== 'whole') return { absent: 'unknown' };
  return { absent: ended(iteration.status) || iteration.ended_at ? 'not' : 'yet' };
}

/** Returns the status of a step that runs now in the iteration that is shown. */
function underWay(model: RunModel, node: GraphNode, place: string): Status | undefined {
  const status = model.status;
  if (!status || model.done) return undefined;
  const loop = place.replace(/#\d+$/, '');
  const newest = place === '' || model.latest(loop) === parse(place).at(-1)?.number;
  if (!newest) return undefined;
  const names = [node.name, node.action];
  const one = status.doing.find((doing) => names.includes(doing.action) && (doing.loop ?? '') === loop);
  if (!one || one.waits_for === 'delay') return undefined;
  return one.waits_for === 'call' || one.waits_for === 'next' ? 'Running' : 'Waiting';
}

const ENDS: Record<string, Status> = {
  condition: 'Succeeded', break: 'Succeeded', repeat: 'Succeeded', count: 'Failed', timeout: 'TimedOut', failed: 'Failed', cancelled: 'Cancelled',
};

/** Returns whether known iterations of a loop failed or have a failed action. */
function hasFailures(model: RunModel, loop: string): boolean {
  const totals = model.strips.get(loop)?.totals;
  return totals !== undefined && totals.failed + totals.timed_out + totals.succeeded_with_failures > 0;
}

function loopState(model: RunModel, node: GraphNode): NodeState {
  const loop = model.instance(node.path);
  if (loop === undefined) return { absent: 'yet' };
  const place = around(model, node);
  const row = ownActions(model.iterations.get(place ?? '')).find((one) => one.action === (node.action ?? node.name));
  if (row && ended(row.status)) return { status: row.status === 'Succeeded' && hasFailures(model, loop) ? 'SucceededWithFailures' : stateOfPart(row), loop };
  const failed = model.status?.outcome?.error?.loop;
  if (failed === loop || failed?.startsWith(`${loop}#`)) return { status: 'Failed', loop };
  const report = model.report(loop);
  if (report) {
    const waits = model.status?.doing.find((doing) => doing.loop === loop)?.waits_for === 'delay';
    const paused = model.status?.status === 'Paused';
    return { status: paused ? 'Paused' : waits ? 'Waiting' : 'Running', loop };
  }
  const entry = model.entry(loop);
  if (entry) {
    const status = entry.status === 'running' ? (model.done ? 'Cancelled' : 'Running') : ENDS[entry.status] ?? 'Succeeded';
    return { status: status === 'Succeeded' && hasFailures(model, loop) ? 'SucceededWithFailures' : status, loop };
  }
  const strip = model.strips.get(loop);
  if (strip && (strip.iterations > 0 || strip.running)) return { status: strip.running ? 'Running' : 'Succeeded', loop };
  const outer = model.iterations.get(place ?? '');
  return { absent: model.done || outer?.ended_at ? 'not' : 'yet', loop };
}
