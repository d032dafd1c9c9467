// Starts a great many runs, over as many connections as the server likes.
import type { Server } from './server.js';

export async function many(server: Server, runs: number, workflow = 'tiny', connections = 32): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < runs) {
      const run = `r-${String(next++).padStart(6, '0')}`;
      await server.post('/v1/runs', { workflow, run });
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
}
