// The list of runs as a window over pages. It is a snapshot from when it was loaded: later runs are only
// counted, so that no row moves while the user reads.
import { isAbort, messageOf } from '../api/http';
import { listRuns, type RunFilter } from '../api/requests';
import type { RunList as Answer, RunRow } from '../api/types';
import { live } from '../live/live.svelte';
import { stateOfRun } from '../words/status';

const PAGE = 100;
/** Maximum number of loaded pages; beyond it, pages far from the view are dropped. */
const MAX_PAGES = 40;

export class RunList {
  total = $state(0);
  facets = $state.raw<Answer['facets']>(undefined);
  /** Number of new runs that match the filter and are not in the list yet. */
  fresh = $state(0);
  loaded = $state(false);
  error = $state('');
  /** The scroll position of the user, for Back. */
  scrollTop = 0;
  active = 0;
  /** Changes with each change of the rows. */
  version = $state(0);
  private pages = new Map<number, (RunRow | undefined)[]>();
  /** Loaded pages that are requested again when they are in view. */
  private outdated = new Set<number>();
  private places = new Map<string, number>();
  private inFlight = new Map<number, AbortController>();
  private unknown = new Set<string>();
  /** The newest rows of events that came while pages were requested. The answer may be older. */
  private recent = new Map<string, RunRow>();
  private requests = 0;
  /** The number of the last load, and of the last one whose answer is shown. */
  private loads = 0;
  private shownLoad = 0;
  private anchor: string | undefined;
  private goneTimer: ReturnType<typeof setTimeout> | undefined;
  private facetTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly filter: RunFilter) {}

  listen(): () => void {
    const stop = live.listen({ topic: '*', rows: (rows) => this.patch(rows), gone: (runs) => this.drop(runs), again: () => this.again(), begun: () => void this.load() });
    return () => {
      stop();
      clearTimeout(this.facetTimer);
      clearTimeout(this.goneTimer);
      this.facetTimer = this.goneTimer = undefined;
    };
  }

  row(index: number): RunRow | undefined {
    void this.version;
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Loads the list again, with the newest run on top. */
  async load(): Promise<void> {
    const load = (this.loads += 1);
    try {
      const list = await this.request(this.filter, { limit: PAGE, facets: true });
      if (load < this.shownLoad) return;
      this.shownLoad = load;
      for (const stop of this.inFlight.values()) stop.abort();
      this.inFlight.clear();
      this.pages.clear();
      this.outdated.clear();
      this.places.clear();
      this.unknown.clear();
      this.fresh = 0;
      const newest = list.runs[0]?.started_at;
      this.anchor = newest === undefined ? undefined : new Date(Date.parse(newest) + 1).toISOString();
      this.facets = list.facets;
      this.keep(0, list);
      this.error = '';
    } catch (error) {
      this.error = messageOf(error);
    }
    this.loaded = true;
  }

  /** Requests the pages with the rows `from..to`. */
  need(from: number, to: number): void {
    const first = Math.floor(from / PAGE);
    const last = Math.floor(Math.max(from, Math.min(to, this.total) - 1) / PAGE);
    for (const [page, stop] of this.inFlight) {
      if (page < first - 1 || page > last + 1) {
        stop.abort();
        this.inFlight.delete(page);
      }
    }
    for (let page = first; page <= last; page += 1) {
      const isMissing = !this.pages.has(page) || this.outdated.has(page);
      if (isMissing && !this.inFlight.has(page)) void this.fetch(page);
    }
    if (this.pages.size > MAX_PAGES) this.forget(first, last);
  }

  /** The filter of exactly the runs in the list: later runs are left out. */
  get snapshot(): RunFilter {
    return { ...this.filter, until: this.filter.until || this.anchor };
  }

  /** Returns the runs of the loaded rows. */
  known(): RunRow[] {
    return [...this.pages.values()].flat().filter((row) => row !== undefined);
  }

  /** Returns the runs of the rows `from..=to`. Requests the pages that are not loaded. */
  async range(from: number, to: number): Promise<string[]> {
    const load = this.shownLoad;
    const runs: string[] = [];
    for (let page = Math.floor(from / PAGE); page * PAGE <= to; page += 1) {
      if (!this.pages.has(page)) {
        const answer = await this.request(this.snapshot, { offset: page * PAGE, limit: PAGE });
        if (load !== this.shownLoad) throw new Error('The list was loaded again meanwhile.');
        this.keep(page, answer);
      }
      this.pages.get(page)?.forEach((row, index) => {
        const place = page * PAGE + index;
        if (row && from <= place && place <= to) runs.push(row.run);
      });
    }
    return runs;
  }

  private async fetch(page: number): Promise<void> {
    const stop = new AbortController();
    this.inFlight.set(page, stop);
    try {
      this.keep(page, await this.request(this.snapshot, { offset: page * PAGE, limit: PAGE }, stop.signal));
      this.error = '';
    } catch (error) {
      if (!isAbort(error)) this.error = messageOf(error);
    }
    if (this.inFlight.get(page) === stop) this.inFlight.delete(page);
  }

  private async request(...parameters: Parameters<typeof listRuns>): Promise<Answer> {
    this.requests += 1;
    try {
      return await listRuns(...parameters);
    } finally {
      this.requests -= 1;
    }
  }

  private keep(page: number, list: Answer): void {
    this.pages.set(page, list.runs);
    this.outdated.delete(page);
    list.runs.forEach((row, index) => this.places.set(row.run, page * PAGE + index));
    this.total = list.total;
    this.version += 1;
    this.update([...this.recent.values()]);
  }

  private forget(first: number, last: number): void {
    for (const [page, rows] of this.pages) {
      if (page >= first - 5 && page <= last + 5) continue;
      for (const row of rows) if (row) this.places.delete(row.run);
      this.pages.delete(page);
    }
  }

  private patch(rows: RunRow[]): void {
    if (this.requests === 0) this.recent.clear();
    else for (const row of rows) this.recent.set(row.run, row);
    this.update(rows);
    this.facetTimer ??= setTimeout(() => void this.count(), 2_000);
  }

  /** Removes deleted runs: requests the pages again, because later rows move up. */
  private drop(runs: string[]): void {
    for (const run of runs) {
      this.places.delete(run);
      this.unknown.delete(run);
      this.recent.delete(run);
    }
    this.fresh = this.unknown.size;
    this.goneTimer ??= setTimeout(() => {
      this.goneTimer = undefined;
      this.again();
    }, 500);
  }

  private update(rows: RunRow[]): void {
    let changed = false;
    for (const row of rows) {
      const index = this.places.get(row.run);
      const page = index === undefined ? undefined : this.pages.get(Math.floor(index / PAGE));
      if (index !== undefined && page) {
        const shown = page[index % PAGE];
        if (shown?.started_at === row.started_at && row.commit < shown.commit) continue;
        page[index % PAGE] = row;
        changed = true;
      } else if ((this.anchor === undefined || row.started_at >= this.anchor) && this.fits(row)) {
        this.unknown.add(row.run);
      }
    }
    if (changed) this.version += 1;
    this.fresh = this.unknown.size;
  }

  private async count(): Promise<void> {
    this.facetTimer = undefined;
    try {
      this.facets = (await listRuns(this.filter, { limit: 1, facets: true })).facets;
    } catch {
      // The next change requests this again.
    }
  }

  private fits(row: RunRow): boolean {
    const { status, workflow, text, until } = this.filter;
    const states = [row.status, stateOfRun(row)];
    if (status && !status.split(',').some((one) => states.includes(one))) return false;
    if (workflow && workflow !== row.workflow) return false;
    if (until && Date.parse(row.started_at) >= Date.parse(until)) return false;
    if (!text) return true;
    const where = [row.run, row.workflow, ...Object.entries(row.labels).flat()].join('\n').toLowerCase();
    return where.includes(text.toLowerCase());
  }

  /** After a time without the server, requests the pages in view again, and other pages when they are in view. */
  private again(): void {
    for (const page of this.pages.keys()) this.outdated.add(page);
    this.version += 1;
    void this.count();
    void this.news();
  }

  /** Counts runs that were started while the stream was interrupted. */
  private async news(): Promise<void> {
    try {
      const list = await listRuns({ ...this.filter, since: this.anchor }, { limit: PAGE });
      for (const row of list.runs) if (!this.places.has(row.run)) this.unknown.add(row.run);
      this.fresh = this.unknown.size;
    } catch {
      // The stream reports later changes.
    }
  }
}
