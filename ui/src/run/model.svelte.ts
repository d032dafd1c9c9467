// All that is known of the run that is shown. What a screen shows is wanted, and so it stays up to date.
import { SvelteMap } from 'svelte/reactivity';
import { messageOf, Refusal } from '../api/http';
import * as requests from '../api/requests';
import type { ActionRow, BudgetReport, Counts, Graph, GraphNode, Iteration, Lane, LoopEntry, LoopReport, StatusReport, Strip } from '../api/types';
import { live } from '../live/live.svelte';
import { route } from '../shell/route.svelte';
import { ended } from '../words/status';
import { iterationPath, join, parse, plain, type Step } from './paths';

/** So many cells a strip has. */
export const CELLS = 400;

export class RunModel {
  status = $state.raw<StatusReport>();
  /** The graph with everything open: what there is, wherever it is drawn. */
  whole = $state.raw<Graph>();
  loops = $state.raw<LoopEntry[]>([]);
  error = $state('');
  gone = $state(false);
  strips = new SvelteMap<string, Strip>();
  /** By path; what the run did outside of its loops has none. */
  iterations = new SvelteMap<string, Iteration>();
  private wanted = new Set<string>();
  private asking = new Set<string>();
  private refused = new Set<string>();
  private commit = -1;
  /** The commit at which each part was last requested. */
  private readonly requestedAt = new Map<string, number>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  done = $derived(ended(this.status?.status));
  nodes = $derived(new Map((this.whole?.nodes ?? []).map((node) => [node.id, node])));
  /** Loops by their path without numbers. */
  loopNodes = $derived(new Map((this.whole?.nodes ?? []).filter(isLoop).map((node) => [node.path, node])));
  private entries = $derived(new Map(this.loops.map((entry) => [entry.path, entry])));
  private reports = $derived(new Map((this.status?.loops ?? []).map((report) => [report.path, report])));

  /** The loop that is chosen, with the numbers of the loops around it. */
  loop = $derived.by((): string | undefined => {
    const requested = route.get('loop');
    if (requested !== '') return this.resolve(parse(requested));
    const first = this.status?.loops[0]?.path ?? [...this.loopNodes.keys()].find((path) => !path.includes('/'));
    return first ?? this.loops.at(-1)?.path;
  });
  following = $derived(route.get('it') === '');
  /** The number of the chosen iteration, from 0. */
  number = $derived.by((): number | undefined => {
    if (this.loop === undefined) return undefined;
    return this.following ? this.followed(this.loop) : Math.max(0, Number.parseInt(route.get('it'), 10) - 1 || 0);
  });
  /** The path of the chosen iteration; empty outside of loops. */
  place = $derived(this.loop === undefined || this.number === undefined ? '' : iterationPath(this.loop, this.number));
  /** The path of the newest iteration, when that is followed. */
  newest = $derived.by((): string | undefined => {
    const latest = this.loop === undefined || !this.following ? undefined : this.latest(this.loop);
    return this.loop === undefined || latest === undefined ? undefined : iterationPath(this.loop, latest);
  });

  constructor(readonly id: string) {}

  start(): () => void {
    const stop = live.listen({ topic: this.id, status: (status) => this.take(status), again: () => void this.load() });
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

  report(loop: string): LoopReport | undefined {
    return this.reports.get(loop);
  }

  entry(loop: string): LoopEntry | undefined {
    return this.entries.get(loop);
  }

  /** The newest iteration of a loop, from 0. */
  latest(loop: string): number | undefined {
    const report = this.reports.get(loop);
    if (report) return Math.max(0, report.iteration - 1);
    const strip = this.strips.get(loop);
    const count = Math.max(strip?.iterations ?? 0, this.entries.get(loop)?.iterations ?? 0) + (strip?.running ? 1 : 0);
    return count === 0 ? undefined : count - 1;
  }

  /** The newest iteration that is loaded: following moves on when there is something to show. */
  private followed(loop: string): number | undefined {
    const latest = this.latest(loop);
    if (latest === undefined) return undefined;
    for (let number = latest; number > latest - 4; number -= 1) {
      if (this.iterations.has(iterationPath(loop, number))) return number;
    }
    return latest;
  }

  /** The items of a foreach that are under way. */
  lanes(loop: string): Lane[] {
    return this.status?.forks.find((fork) => fork.path === loop)?.lanes ?? [];
  }

  most(loop: string): number | undefined {
    return this.reports.get(loop)?.max_iterations ?? this.strips.get(loop)?.max_iterations ?? this.entries.get(loop)?.max_iterations ?? undefined;
  }

  /** What a loop used of its limits `tokens` and `cost`. */
  budgets(loop: string): BudgetReport[] {
    return (this.reports.get(loop) ?? this.strips.get(loop))?.budgets ?? [];
  }

  /** The number of iterations of a loop that can be shown, with the one in flight. */
  count(loop: string): number {
    return (this.latest(loop) ?? -1) + 1;
  }

  /** The iteration of a loop that is shown: the chosen one, or the newest. */
  shown(loop: string): number | undefined {
    if (loop === this.loop) return this.number;
    if (this.loop?.startsWith(`${loop}#`)) return parse(this.loop)[parse(loop).length - 1]?.number;
    return this.latest(loop);
  }

  /** Puts the numbers that are shown into a path that lacks some; none when a loop around was not entered. */
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

  /** Chooses an iteration; none follows the newest one. */
  choose(loop: string, number: number | undefined, more: Record<string, string | null> = {}): void {
    route.set({ loop, it: number === undefined ? null : number + 1, ...more }, loop === this.loop);
  }

  /** Says what is shown: `strip:PATH`, `iteration:PATH`. It is requested, and again when the run moves. */
  want(keys: string[]): void {
    this.wanted = new Set(keys);
    for (const key of keys) if (!this.has(key) || this.isBehind(key)) void this.ask(key);
  }

  /** Whether the run has moved since this was requested, and it is not about to be requested again. */
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
    try {
      this.loops = (await requests.loops(this.id)).loops;
    } catch {
      // Requested again when the run moves.
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
      // What is not there yet may appear while the run continues.
      if (error instanceof Refusal && error.status === 404 && !this.done) setTimeout(() => this.refused.delete(key), 1_000);
    }
    this.asking.delete(key);
    if (this.wanted.has(key) && this.isBehind(key)) void this.ask(key);
    this.forget();
  }

  /** Keeps what is shown and the last few others. */
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

/** The actions of an iteration itself, without those of loops inside of it. */
export function ownActions(iteration: Iteration | undefined): ActionRow[] {
  if (!iteration) return [];
  const start = `${iteration.path}/`;
  return iteration.actions.filter((row) => !row.path.startsWith(start) || !row.path.slice(start.length).includes('#'));
}

/** How iterations ended, in words that add up. */
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
