// All known data of the run that is shown. Screens name the parts that they show, and these stay up to date.
import { SvelteMap } from 'svelte/reactivity';
import { messageOf, Refusal } from '../api/http';
import * as requests from '../api/requests';
import type { ActionRow, BudgetReport, Counts, Graph, GraphNode, Iteration, Lane, LoopEntry, LoopReport, StatusReport, Strip } from '../api/types';
import { live } from '../live/live.svelte';
import { decode, route } from '../shell/route.svelte';
import { ended } from '../words/status';
import { iterationPath, join, parse, plain, type Step } from './paths';

/** Maximum number of cells of a strip. */
export const CELLS = 400;

export class RunModel {
  status = $state.raw<StatusReport>();
  /** The graph with all frames open, which contains all nodes. */
  whole = $state.raw<Graph>();
  loops = $state.raw<LoopEntry[]>([]);
  error = $state('');
  gone = $state(false);
  strips = new SvelteMap<string, Strip>();
  /** By path; what the run did outside of its loops has the empty path. */
  iterations = new SvelteMap<string, Iteration>();
  private wanted = new Set<string>();
  private asking = new Set<string>();
  private refused = new Set<string>();
  /** The messages of the server for loops that the run does not have. */
  unknownLoops = new SvelteMap<string, string>();
  private commit = -1;
  /** Number of requests for the loops. Only the answer to the last one is shown. */
  private loopRequests = 0;
  /** The commit at which each part was last requested. */
  private readonly requestedAt = new Map<string, number>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  done = $derived(ended(this.status?.status));
  nodes = $derived(new Map((this.whole?.nodes ?? []).map((node) => [node.id, node])));
  /** The nodes of loops, by their path without numbers. */
  loopNodes = $derived(new Map((this.whole?.nodes ?? []).filter(isLoop).map((node) => [node.path, node])));
  private entries = $derived(new Map(this.loops.map((entry) => [entry.path, entry])));
  private reports = $derived(new Map((this.status?.loops ?? []).map((report) => [report.path, report])));

  /** The chosen loop, with the numbers of the enclosing loops. */
  loop = $derived.by((): string | undefined => {
    const requested = route.get('loop');
    if (requested !== '') return this.resolve(parse(requested));
    const first = this.status?.loops[0]?.path ?? [...this.loopNodes.keys()].find((path) => !path.includes('/'));
    return first ?? this.loops.at(-1)?.path;
  });
  following = $derived(route.get('it') === '');
  /** JSON pointers to the watched values of the results. */
  watched = $derived(route.get('watch').split(',').filter(Boolean).map(decode));
  /** The number of the chosen iteration, from 0. */
  number = $derived.by((): number | undefined => {
    if (this.loop === undefined) return undefined;
    return this.following ? this.followed(this.loop) : Math.max(0, Number.parseInt(route.get('it'), 10) - 1 || 0);
  });
  /** The path of the chosen iteration; empty outside of loops. */
  place = $derived(this.loop === undefined || this.number === undefined ? '' : iterationPath(this.loop, this.number));
  /** The path of the newest iteration, if the newest one is followed. */
  newest = $derived.by((): string | undefined => {
    const latest = this.loop === undefined || !this.following ? undefined : this.latest(this.loop);
    return this.loop === undefined || latest === undefined ? undefined : iterationPath(this.loop, latest);
  });

  constructor(readonly id: string) {}

  start(): () => void {
    const stop = live.listen({ topic: this.id, status: (status) => this.take(status), gone: (runs) => runs.includes(this.id) && void this.load(), again: () => void this.reload() });
    void this.load();
    return () => {
      stop();
      clearTimeout(this.timer);
    };
  }

  async load(): Promise<void> {
    try {
      this.take(await requests.status(this.id));
      this.error = '';
    } catch (error) {
      this.error = messageOf(error);
      this.gone = error instanceof Refusal && error.status === 404;
      return;
    }
    this.refused.clear();
    void this.askLoops();
    this.refresh();
    if (this.whole) return;
    try {
      this.whole = await requests.graph(this.id, 'all', '');
    } catch (error) {
      this.error = `No graph: ${messageOf(error)}`;
    }
  }

  /** After a time without the server, accepts any state: the server may have been restored from a backup. */
  private reload(): Promise<void> {
    this.commit = -1;
    return this.load();
  }

  report(loop: string): LoopReport | undefined {
    return this.reports.get(loop);
  }

  entry(loop: string): LoopEntry | undefined {
    return this.entries.get(loop);
  }

  /** Returns the newest iteration of a loop, from 0. */
  latest(loop: string): number | undefined {
    const report = this.reports.get(loop);
    if (report) return Math.max(0, report.iteration - 1);
    const strip = this.strips.get(loop);
    const count = Math.max(strip?.iterations ?? 0, this.entries.get(loop)?.iterations ?? 0) + (strip?.running ? 1 : 0);
    return count === 0 ? undefined : count - 1;
  }

  /** Returns the newest loaded iteration, so that following does not move to one that cannot be shown yet. */
  private followed(loop: string): number | undefined {
    const latest = this.latest(loop);
    if (latest === undefined) return undefined;
    for (let number = latest; number > latest - 4; number -= 1) {
      if (this.iterations.has(iterationPath(loop, number))) return number;
    }
    return latest;
  }

  /** Returns the items of a foreach that are in flight. */
  lanes(loop: string): Lane[] {
    return this.status?.forks.find((fork) => fork.path === loop)?.lanes ?? [];
  }

  most(loop: string): number | undefined {
    return this.reports.get(loop)?.max_iterations ?? this.strips.get(loop)?.max_iterations ?? this.entries.get(loop)?.max_iterations ?? undefined;
  }

  /** Returns how much a loop used of its limits `tokens` and `cost`. */
  budgets(loop: string): BudgetReport[] {
    return (this.reports.get(loop) ?? this.strips.get(loop))?.budgets ?? [];
  }

  /** Returns the number of iterations of a loop that can be shown, including the one in flight. */
  count(loop: string): number {
    return (this.latest(loop) ?? -1) + 1;
  }

  /** Returns the iteration of a loop that is shown: the chosen one, or the newest. */
  shown(loop: string): number | undefined {
    if (loop === this.loop) return this.number;
    if (this.loop?.startsWith(`${loop}#`)) return parse(this.loop)[parse(loop).length - 1]?.number;
    return this.latest(loop);
  }

  /** Adds the shown iteration numbers to a path; undefined if an enclosing loop has no iteration. */
  instance(path: string): string | undefined {
    const steps: Step[] = [];
    const names = parse(path);
    for (const [index, step] of names.entries()) {
      if (index === names.length - 1) return join([...steps, { name: step.name }]);
      const number = this.shown(join([...steps, { name: step.name }]));
      if (number === undefined) return undefined;
      steps.push({ name: step.name, number });
    }
    return undefined;
  }

  /** Chooses an iteration; without a number, follows the newest one. */
  choose(loop: string, number: number | undefined, more: Record<string, string | null> = {}): void {
    route.set({ loop, it: number === undefined ? null : number + 1, ...more }, loop === this.loop);
  }

  /** Sets the parts that are shown: `strip:PATH`, `iteration:PATH`. They are requested again when the run changes. */
  want(keys: string[]): void {
    this.wanted = new Set(keys);
    for (const key of keys) if (!this.has(key) || this.isBehind(key)) void this.ask(key);
  }

  /** Returns whether the run has changed since this part was requested, and no new request is planned. */
  private isBehind(key: string): boolean {
    return this.timer === undefined && this.requestedAt.get(key) !== this.commit;
  }

  titleOf(loop: string): string {
    return this.loopNodes.get(plain(loop))?.title ?? this.entries.get(loop)?.title ?? parse(loop).at(-1)?.name ?? loop;
  }

  private resolve(steps: Step[]): string {
    const whole: Step[] = [];
    for (const [index, step] of steps.entries()) {
      const number = index === steps.length - 1 ? undefined : step.number ?? this.latest(join([...whole, { name: step.name }])) ?? 0;
      whole.push(number === undefined ? { name: step.name } : { name: step.name, number });
    }
    return join(whole);
  }

  private take(status: StatusReport): void {
    // An answer may arrive after a newer event.
    if (status.started_at === this.status?.started_at && status.commit < this.commit) return;
    this.status = status;
    if (status.commit === this.commit) return;
    this.commit = status.commit;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.askLoops();
      this.refresh();
    }, Math.min(2_000, 250 + 40 * this.wanted.size));
  }

  private refresh(): void {
    for (const key of this.wanted) void this.ask(key);
  }

  private async askLoops(): Promise<void> {
    const request = (this.loopRequests += 1);
    try {
      const { loops } = await requests.loops(this.id);
      if (request === this.loopRequests) this.loops = loops;
    } catch {
      // Requested again when the run changes.
    }
  }

  private has(key: string): boolean {
    const [kind, path] = cutKey(key);
    return this.refused.has(key) || (kind === 'strip' ? this.strips.has(path) : this.iterations.has(path));
  }

  private async ask(key: string): Promise<void> {
    const [kind, path] = cutKey(key);
    const known = this.iterations.get(path);
    if (this.asking.has(key) || this.refused.has(key) || (kind === 'iteration' && known?.ended_at)) return;
    this.asking.add(key);
    this.requestedAt.set(key, this.commit);
    try {
      if (kind === 'strip') this.strips.set(path, await requests.strip(this.id, path, { buckets: CELLS }));
      else this.iterations.set(path, await requests.iteration(this.id, path));
    } catch (error) {
      if (error instanceof Refusal) this.refused.add(key);
      if (error instanceof Refusal && error.status === 400 && kind === 'strip') this.unknownLoops.set(path, error.message);
      // A part that does not exist yet may appear while the run continues.
      if (error instanceof Refusal && error.status === 404 && !this.done) setTimeout(() => this.refused.delete(key), 1_000);
    }
    this.asking.delete(key);
    if (this.wanted.has(key) && this.isBehind(key)) void this.ask(key);
    this.forget();
  }

  /** Removes the oldest parts if there are many, but not those that are shown. */
  private forget(): void {
    for (const [map, kind] of [[this.strips, 'strip'], [this.iterations, 'iteration']] as const) {
      if (map.size <= 80) continue;
      for (const path of [...map.keys()].slice(0, 20)) if (!this.wanted.has(`${kind}:${path}`)) {
        map.delete(path);
        this.requestedAt.delete(`${kind}:${path}`);
      }
    }
  }
}

/** Returns the actions of an iteration itself, without those of inner loops. */
export function ownActions(iteration: Iteration | undefined): ActionRow[] {
  if (!iteration) return [];
  const start = `${iteration.path}/`;
  return iteration.actions.filter((row) => !row.path.startsWith(start) || !row.path.slice(start.length).includes('#'));
}

/** Returns how iterations ended, as words with counts that add up. */
export function outcomes(counts: Counts): [word: string, value: number][] {
  return [
    ['succeeded', counts.succeeded - counts.succeeded_with_failures], ['succeeded with failures', counts.succeeded_with_failures],
    ['failed', counts.failed], ['timed out', counts.timed_out], ['cancelled', counts.cancelled], ['skipped', counts.skipped],
  ];
}

export function isLoop(node: GraphNode): boolean {
  return node.kind === 'loop' || node.kind === 'foreach';
}

function cutKey(key: string): [string, string] {
  const at = key.indexOf(':');
  return [key.slice(0, at), key.slice(at + 1)];
}
