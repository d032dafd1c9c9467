// The server that workflows of the tests call. A test says what it answers, and may let a caller wait.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export type Answer = { status?: number; body?: unknown; html?: string };
type Handler = (n: number, path: string) => Answer | Promise<Answer>;

export class World {
  private readonly handlers: [prefix: string, handler: Handler][] = [];
  private readonly counts = new Map<string, number>();
  private readonly server = http.createServer((request, response) => void this.answer(request, response));
  private readonly waiters: { prefix: string; n: number; go: () => void }[] = [];

  static async start(): Promise<World> {
    const world = new World();
    await new Promise<void>((ready) => world.server.listen(0, '127.0.0.1', ready));
    return world;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Answers paths that begin like this; `n` counts the calls of the same path from 1. The newest wins. */
  on(prefix: string, handler: Handler): void {
    this.handlers.unshift([prefix, handler]);
  }

  /** Resolves when a path has been called so often. */
  called(path: string, n: number): Promise<void> {
    if ((this.counts.get(path) ?? 0) >= n) return Promise.resolve();
    return new Promise((go) => this.waiters.push({ prefix: path, n, go }));
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', 'http://x').pathname;
    const n = (this.counts.get(path) ?? 0) + 1;
    this.counts.set(path, n);
    for (const waiter of this.waiters) if (waiter.prefix === path && n >= waiter.n) waiter.go();
    const handler = this.handlers.find(([prefix]) => path.startsWith(prefix))?.[1];
    const { status = 200, body = {}, html }: Answer = handler ? await handler(n, path) : { status: 404 };
    const text = html ?? JSON.stringify(body);
    response.writeHead(status, { 'content-type': html ? 'text/html' : 'application/json', 'content-length': Buffer.byteLength(text) });
    response.end(text);
  }

  end(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Something that happens once, when the test says so. */
export class Gate {
  open!: () => void;
  readonly opened = new Promise<void>((open) => (this.open = open));
}
