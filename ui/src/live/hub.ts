// The one event stream of all tabs. It runs in the shared worker, or in the tab if the browser has no shared worker.
import { parse } from '../api/json';
import type { Hello, RunRow, StatusReport } from '../api/types';
import type { Connection, FromHub, ToHub, Topic } from './protocol';

interface Client {
  send: (message: FromHub) => void;
  topics: Set<Topic>;
  heardAt: number;
}

/** A tab without a message for this many milliseconds is closed. A hidden tab may be limited to one timer a minute. */
const GONE = 200_000;
/** After this many milliseconds without an event, the hub checks whether the server still answers. */
const SILENCE = 20_000;
/** Subscriptions within this many milliseconds open one stream. */
const SETTLE = 30;

export class Hub {
  private clients = new Set<Client>();
  private stream: EventSource | undefined;
  private named = '';
  private opening: ReturnType<typeof setTimeout> | undefined;
  private connection: Connection = 'connecting';
  private hello: Hello | undefined;
  private statuses = new Map<string, StatusReport>();
  private heardAt = Date.now();
  private failures = 0;
  /** The id of the last event. The next stream sends the changes after it. */
  private last = '';

  constructor() {
    setInterval(() => this.look(), 5_000);
  }

  join(send: (message: FromHub) => void): (message: ToHub) => void {
    const client: Client = { send, topics: new Set(), heardAt: Date.now() };
    this.clients.add(client);
    send({ kind: 'connection', connection: this.connection });
    if (this.hello) send({ kind: 'hello', hello: this.hello, after: 'join' });
    return (message) => this.take(client, message);
  }

  private take(client: Client, message: ToHub): void {
    client.heardAt = Date.now();
    this.clients.add(client);
    if (message.kind === 'topics') {
      const before = client.topics;
      client.topics = new Set(message.topics);
      for (const topic of client.topics) {
        const known = before.has(topic) ? undefined : this.statuses.get(topic);
        if (known) client.send({ kind: 'status', status: known });
      }
      this.settle(SETTLE);
    } else if (message.kind === 'bye') {
      this.clients.delete(client);
      this.settle(SETTLE);
    } else if (message.kind === 'wake') {
      if (this.connection === 'signed-out') this.move('connecting');
      this.named = '';
      this.settle(0);
    }
  }

  /** Opens the stream again if other runs are wanted. */
  private settle(after: number): void {
    clearTimeout(this.opening);
    this.opening = setTimeout(() => this.open(), after);
  }

  private open(): void {
    const topics = new Set<Topic>();
    for (const client of this.clients) for (const topic of client.topics) topics.add(topic);
    // A page that follows no run also shows whether the server answers.
    if (topics.size === 0 && this.clients.size > 0 && this.connection !== 'signed-out') topics.add('*');
    const named = [...topics].sort().join(',');
    if (this.stream && this.stream.readyState !== EventSource.CLOSED && named === this.named) return;
    this.stream?.close();
    this.stream = undefined;
    this.named = named;
    for (const run of this.statuses.keys()) if (!topics.has(run)) this.statuses.delete(run);
    if (topics.size === 0) {
      this.last = '';
      if (this.connection === 'connected') this.move('connecting');
      return;
    }
    const after = this.last === '' ? '' : `&after=${encodeURIComponent(this.last)}`;
    const stream = new EventSource(`/v1/events?runs=${encodeURIComponent(named)}&max_hz=10${after}`);
    this.stream = stream;
    this.heardAt = Date.now();
    const listen = (name: string, take: (data: string) => void): void =>
      stream.addEventListener(name, (event) => {
        if (stream !== this.stream) return;
        this.heardAt = Date.now();
        const { data, lastEventId } = event as MessageEvent<string>;
        this.last = lastEventId || this.last;
        take(data);
      });
    listen('hello', (data) => this.greeted(parse<Hello>(data)));
    listen('rows', (data) => this.rows(parse<RunRow[]>(data)));
    listen('run', (data) => this.rows([parse<RunRow>(data)]));
    listen('gone', (data) => this.gone(parse<string[]>(data)));
    listen('status', (data) => this.status(parse<StatusReport>(data)));
    stream.onopen = () => {
      this.failures = 0;
    };
    stream.onerror = () => {
      if (stream === this.stream) this.failed(stream);
    };
  }

  private greeted(hello: Hello): void {
    const after = ({ connected: 'join', reconnecting: 'loss' } as const)[this.connection as string] ?? 'start';
    this.hello = hello;
    this.move('connected');
    this.broadcast({ kind: 'hello', hello, after });
  }

  private rows(rows: RunRow[]): void {
    for (const client of this.clients) if (client.topics.has('*')) client.send({ kind: 'rows', rows });
  }

  private gone(runs: string[]): void {
    for (const run of runs) this.statuses.delete(run);
    this.broadcast({ kind: 'gone', runs });
  }

  private status(status: StatusReport): void {
    this.statuses.set(status.run, status);
    for (const client of this.clients) {
      if (client.topics.has(status.run)) client.send({ kind: 'status', status });
    }
  }

  private failed(stream: EventSource): void {
    if (this.connection !== 'signed-out') this.move(this.hello ? 'reconnecting' : 'connecting');
    if (stream.readyState !== EventSource.CLOSED) return;
    this.failures += 1;
    void fetch('/v1/me', { credentials: 'same-origin', cache: 'no-store' })
      .then((answer) => {
        if (answer.status === 401) this.move('signed-out');
      })
      .catch(() => {});
    this.settle(Math.min(250 * 2 ** this.failures, 4_000));
  }

  private move(connection: Connection): void {
    if (connection === this.connection) return;
    this.connection = connection;
    this.broadcast({ kind: 'connection', connection });
  }

  private broadcast(message: FromHub): void {
    for (const client of this.clients) client.send(message);
  }

  /** Removes tabs that are closed, and checks whether a silent server still answers. */
  private look(): void {
    const now = Date.now();
    for (const client of this.clients) {
      if (now - client.heardAt > GONE) {
        this.clients.delete(client);
        this.settle(SETTLE);
      }
    }
    if (this.stream?.readyState !== EventSource.OPEN || now - this.heardAt < SILENCE) return;
    this.heardAt = now;
    const stream = this.stream;
    fetch('/v1/me', { credentials: 'same-origin', cache: 'no-store', signal: AbortSignal.timeout(5_000) }).catch(() => {
      if (stream !== this.stream) return;
      stream.close();
      this.failed(stream);
    });
  }
}
