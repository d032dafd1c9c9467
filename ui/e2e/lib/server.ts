// A real `windlass serve` with a state directory of its own, which a test may kill and start again.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** The folder of these tests, from playwright.config.ts. */
export const HERE = process.env.E2E_HERE ?? process.cwd();
const ROOT = resolve(HERE, '../..');

/** The program under test. */
export function program(): string {
  const named = process.env.WINDLASS_BIN;
  const known = named ? [resolve(named)] : ['release', 'debug'].map((kind) => join(ROOT, 'target', kind, 'windlass'));
  const found = known.find((path) => existsSync(path));
  if (!found) throw new Error(`there is no windlass to test: build it (cargo build), or name it with WINDLASS_BIN. Looked for: ${known.join(', ')}`);
  return found;
}

export type Options = { args?: string[]; env?: Record<string, string>; token?: string };
export type Start = { input?: unknown; labels?: Record<string, string>; run?: string };
export type Json = any; // eslint-disable-line @typescript-eslint/no-explicit-any

export class Server {
  readonly dir = mkdtempSync(join(tmpdir(), 'windlass-e2e-'));
  readonly agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  private child?: ChildProcess;
  private port = 0;
  /** What it printed on standard error. */
  said = '';

  private constructor(private readonly options: Options) {}

  static async start(options: Options = {}): Promise<Server> {
    const server = new Server(options);
    await server.begin();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child!.pid!;
  }

  /** Starts it, at the port it had before if it had one. */
  async begin(): Promise<void> {
    const env: Record<string, string> = { PATH: process.env.PATH ?? '', HOME: this.dir, ...this.options.env };
    const args = ['serve', '--state', join(this.dir, 'state'), '--listen', `127.0.0.1:${this.port}`];
    args.push('--allow-private-network', '--allow-shell', '--grace', '1s', ...(this.options.args ?? []));
    // A file that may grow no more shall be a failing write, as on a full disk, and not the end of the process.
    const child = spawn('sh', ['-c', `trap '' XFSZ; exec "$0" "$@"`, program(), ...args], { env, cwd: this.dir, stdio: ['ignore', 'ignore', 'pipe'] });
    this.child = child;
    const lines = createInterface({ input: child.stderr! });
    await new Promise<void>((ready, failed) => {
      child.once('error', failed);
      child.once('exit', (code) => failed(new Error(`windlass serve left with ${code}:\n${this.said}`)));
      lines.on('line', (line) => {
        this.said += `${line}\n`;
        const at = /^ready at https?:\/\/127\.0\.0\.1:(\d+)/.exec(line);
        if (at) {
          this.port = Number(at[1]);
          ready();
        }
      });
    });
    child.removeAllListeners('exit');
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    const child = this.child!;
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    this.agent.destroy();
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Asks, and gives the status and the JSON of the answer. */
  ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: Json }> {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const all: Record<string, string> = { ...headers };
    if (sent !== undefined) all['content-type'] = 'application/json';
    if (this.options.token) all.authorization ??= `Bearer ${this.options.token}`;
    return new Promise((done, failed) => {
      const request = http.request(`${this.url}${path}`, { method, agent: this.agent, headers: all }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => (text += part));
        response.on('error', failed);
        response.on('end', () => {
          let parsed: Json = text;
          try {
            parsed = JSON.parse(text);
          } catch {
            // Not everything is JSON.
          }
          done({ status: response.statusCode!, headers: response.headers, body: parsed });
        });
      });
      request.on('error', failed);
      request.end(sent);
    });
  }

  async get(path: string): Promise<Json> {
    const { status, body } = await this.ask('GET', path);
    if (status >= 300) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  async post(path: string, body: unknown = {}): Promise<Json> {
    const answer = await this.ask('POST', path, body);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Starts a run of a file in `workflows`, and gives its id. */
  async run(file: string, start: Start = {}): Promise<string> {
    const text = readFileSync(join(HERE, 'workflows', file), 'utf8');
    return (await this.post('/v1/runs', { text, file, ...start })).run;
  }

  /** Waits for a run's end. */
  async result(run: string): Promise<Json> {
    for (;;) {
      const { status, body } = await this.ask('GET', `/v1/runs/${encodeURIComponent(run)}/result?wait=60`);
      if (status === 200) return body;
      if (status !== 202) throw new Error(`result of ${run}: ${status} ${JSON.stringify(body)}`);
    }
  }

  status(run: string): Promise<Json> {
    return this.get(`/v1/runs/${encodeURIComponent(run)}`);
  }

  /** Follows a run's events until its status is as wanted. */
  async when(run: string, wanted: (status: Json) => boolean): Promise<Json> {
    const path = `/v1/runs/${encodeURIComponent(run)}/events?history=false`;
    const headers: Record<string, string> = this.options.token ? { authorization: `Bearer ${this.options.token}` } : {};
    return new Promise((done, failed) => {
      const request = http.get(`${this.url}${path}`, { headers, agent: false }, (response) => {
        let looking = false;
        let again = false;
        const look = async (): Promise<void> => {
          if (looking) {
            again = true;
            return;
          }
          looking = true;
          do {
            again = false;
            const status = await this.status(run);
            if (wanted(status)) {
              done(status);
              request.destroy();
              return;
            }
          } while (again);
          looking = false;
        };
        response.on('data', () => void look().catch(failed));
        response.on('end', () => look().then(() => failed(new Error(`${run} ended before it was as wanted`)), failed));
        response.on('error', failed);
        void look().catch(failed);
      });
      request.on('error', (error) => failed(error));
    });
  }

  /** A figure of `/metrics`, summed over its labels. */
  async metric(name: string): Promise<number> {
    const { body } = await this.ask('GET', '/metrics');
    let sum = 0;
    for (const line of String(body).split('\n')) {
      if (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) sum += Number(line.split(' ').pop());
    }
    return sum;
  }
}
