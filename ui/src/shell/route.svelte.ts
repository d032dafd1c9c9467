// The place that is shown. The URL contains all of it, so reload, Back and links work.

export type Query = Record<string, string | number | null | undefined>;

class Route {
  path = $state('/');
  private search = $state('');
  /** The part of the page that the address names, as it is written there. */
  anchor = $state('');
  query = $derived(new URLSearchParams(this.search));

  constructor() {
    this.read();
    addEventListener('popstate', () => this.read());
    document.addEventListener('click', (event) => this.follow(event));
  }

  /** The id of the run that is shown, if any. */
  get run(): string | undefined {
    const match = /^\/runs\/([^/]+)$/.exec(this.path);
    return match?.[1] === undefined ? undefined : decode(match[1]);
  }

  /** The stored workflow that is shown: empty on the page of the list, undefined on other pages. */
  get workflow(): string | undefined {
    const match = /^\/workflows(?:\/([^/]+))?$/.exec(this.path);
    return match === null ? undefined : decode(match[1] ?? '');
  }

  /** The page of the manual that is shown: empty for the first page, undefined outside of the manual. */
  get docs(): string | undefined {
    const match = /^\/docs(?:\/(.+))?$/.exec(this.path);
    return match === null ? undefined : decode(match[1] ?? '');
  }

  /** Whether the list of runs is shown. */
  get list(): boolean {
    return this.path === '/' || this.path === '/runs';
  }

  get(name: string): string {
    return this.query.get(name) ?? '';
  }

  go(path: string, query: Query = {}): void {
    history.pushState(null, '', address(path, query));
    this.read();
  }

  /** Changes members of the query; empty ones are removed. With `replace`, the change is not a step for Back. */
  set(changes: Query, replace = false): void {
    const next = new URLSearchParams(this.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined || value === null || value === '') next.delete(name);
      else next.set(name, String(value));
    }
    const text = next.toString();
    if (text === new URLSearchParams(this.search).toString()) return;
    const url = `/ui${this.path === '/' ? '/' : this.path}${text === '' ? '' : `?${text}`}`;
    if (replace) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    this.read();
  }

  private read(): void {
    this.path = location.pathname.replace(/^\/ui/, '').replace(/(.)\/$/, '$1') || '/';
    this.search = location.search;
    this.anchor = location.hash.slice(1);
  }

  private follow(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = (event.target as Element | null)?.closest?.('a[href]');
    if (!(link instanceof HTMLAnchorElement) || link.target !== '' || link.hasAttribute('download')) return;
    if (link.origin !== location.origin || !link.pathname.startsWith('/ui')) return;
    event.preventDefault();
    history.pushState(null, '', link.href);
    this.read();
    window.scrollTo(0, 0);
  }
}

export function address(path: string, query: Query = {}): string {
  const members = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') members.set(name, String(value));
  }
  const text = members.toString();
  return `/ui${path}${text === '' ? '' : `?${text}`}`;
}

export const runAddress = (run: string, query: Query = {}): string => address(`/runs/${encodeURIComponent(run)}`, query);

/** Decodes a part of an address; if that is not possible, returns it as it is. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = new Route();
