// A proxy between browsers and the server, which counts the streams of events that are open, and can hold new ones.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Server } from './server.js';

export class Tap {
  /** Streams that are open now, and the most there were at a time. */
  open = 0;
  most = 0;
  /** New streams reach the server when this resolves. */
  gate: Promise<void> = Promise.resolve();
  /** Called with each new stream. */
  onStream: (() => void) | undefined;
  private readonly proxy: http.Server;

  private constructor(server: Server) {
    this.proxy = http.createServer(async (request, response) => {
      const stream = request.url!.startsWith('/v1/events') || /^\/v1\/runs\/[^/]+\/events/.test(request.url!);
      if (stream) {
        this.onStream?.();
        await this.gate;
      }
      const on = http.request(`${server.url}${request.url}`, { method: request.method, headers: request.headers, agent: stream ? false : server.agent }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      });
      if (stream) {
        this.open += 1;
        this.most = Math.max(this.most, this.open);
        response.once('close', () => (this.open -= 1));
      }
      on.on('error', () => response.destroy());
      response.once('close', () => on.destroy());
      request.pipe(on);
    });
  }

  static async over(server: Server): Promise<Tap> {
    const tap = new Tap(server);
    await new Promise<void>((ready) => tap.proxy.listen(0, '127.0.0.1', ready));
    return tap;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.proxy.address() as AddressInfo).port}`;
  }

  end(): void {
    this.proxy.closeAllConnections();
    this.proxy.close();
  }
}
