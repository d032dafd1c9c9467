// The tab's end of the event stream: its listeners, and the state of the connection.
import type { Hello, RunRow, StatusReport } from '../api/types';
import { policy } from '../shell/trusted';
import { Hub } from './hub';
import type { Connection, FromHub, ToHub, Topic } from './protocol';

interface Listener {
  topic: Topic;
  rows?: (rows: RunRow[]) => void;
  status?: (status: StatusReport) => void;
  /** Called with the ids of runs that were deleted. */
  gone?: (runs: string[]) => void;
  /** Called after a time without the server, because shown data may be outdated. */
  again?: () => void;
  /** Called when the first stream has begun: changes before it are not sent. */
  begun?: () => void;
}

class Live {
  connection = $state<Connection>('connecting');
  hello = $state.raw<Partial<Hello>>({});
  /** How far the server's clock is ahead of the browser's, in milliseconds. */
  ahead = $state(0);
  private listeners = new Set<Listener>();
  private send: ((message: ToHub) => void) | undefined;

  start(): void {
    if (this.send) {
      // A user has signed in, so the end of the last session's stream does not matter anymore.
      if (this.connection === 'signed-out') this.connection = 'connecting';
      this.send({ kind: 'wake' });
      return;
    }
    this.send = this.connect();
    setInterval(() => this.send?.({ kind: 'alive' }), 20_000);
    addEventListener('pagehide', () => this.send?.({ kind: 'bye' }));
    addEventListener('pageshow', (event) => {
      if (event.persisted) this.topics();
    });
    addEventListener('online', () => this.send?.({ kind: 'wake' }));
    this.topics();
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    this.topics();
    return () => {
      this.listeners.delete(listener);
      this.topics();
    };
  }

  private connect(): (message: ToHub) => void {
    const take = (message: FromHub): void => this.take(message);
    if (typeof SharedWorker === 'undefined') return new Hub().join(take);
    const address = document.querySelector<HTMLMetaElement>('meta[name=windlass-worker]')?.content;
    const url = policy.createScriptURL(address ?? '/ui/worker.js') as unknown as string;
    const worker = new SharedWorker(url, { name: 'windlass' });
    worker.port.onmessage = (event: MessageEvent<FromHub>) => take(event.data);
    return (message) => worker.port.postMessage(message);
  }

  private topics(): void {
    const topics = new Set([...this.listeners].map((listener) => listener.topic));
    this.send?.({ kind: 'topics', topics: [...topics] });
  }

  private take(message: FromHub): void {
    if (message.kind === 'connection') {
      this.connection = message.connection;
    } else if (message.kind === 'hello') {
      this.hello = message.hello;
      for (const listener of this.listeners) {
        if (message.after === 'loss') listener.again?.();
        if (message.after === 'start') listener.begun?.();
      }
    } else if (message.kind === 'rows') {
      for (const listener of this.listeners) listener.rows?.(message.rows);
    } else if (message.kind === 'gone') {
      for (const listener of this.listeners) listener.gone?.(message.runs);
    } else {
      // The message that was in flight for the shortest time is the most exact.
      const ahead = Date.parse(message.status.at) - Date.now();
      if (ahead > this.ahead || ahead < this.ahead - 2_000) this.ahead = ahead;
      for (const listener of this.listeners) {
        if (listener.topic === message.status.run) listener.status?.(message.status);
      }
    }
  }
}

export const live = new Live();
