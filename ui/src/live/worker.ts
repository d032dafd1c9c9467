// The shared worker: one hub for all tabs of the console.
import { Hub } from './hub';
import type { FromHub, ToHub } from './protocol';

const hub = new Hub();

self.addEventListener('connect', (event) => {
  const port = (event as MessageEvent).ports[0];
  if (!port) return;
  const take = hub.join((message: FromHub) => port.postMessage(message));
  port.onmessage = (event: MessageEvent<ToHub>) => take(event.data);
});
