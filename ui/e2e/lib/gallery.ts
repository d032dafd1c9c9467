// Runs that several tests look at and none changes, made once on one server before the first test.
import { Server } from './server.js';
import { Gate, World } from './world.js';

/** How many pages there are, and which fail for good or once. */
export const PAGES = Number(process.env.E2E_PAGES ?? 10_000);
export const fails = (page: number): boolean => page % 769 === 7;
export const fails_once = (page: number): boolean => page % 400 === 11 && !fails(page);
export const range = (to: number): number[] => Array.from({ length: to }, (_, at) => at + 1);

export type Gallery = { url: string; pages: string; nested: string; branch: string; drift: string; canvas: string; cancelled: string; hostile: string; approval: string };

/** What `drift` reads in an iteration: between 17 and 18 a member changes, one comes and one goes. */
export function drift(n: number): unknown {
  const early = n < 18;
  return { kept: 'same', state: early ? 'queued' : 'running', nested: { list: [1, early ? 2 : 20, 3], text: 'a' }, ...(early ? { gone: true } : { added: 'yes' }) };
}

export const HOSTILE = {
  html: '<img src=x onerror="window.owned=5">',
  link: 'javascript:window.owned=6',
  bidi: 'invoice\u202Efdp.exe',
  ansi: '\u001b[31mred\u001b[0m',
  closing: '</script><script>window.owned=7</script>',
};

/** Answers for the workflows of the gallery. */
export function answers(world: World): void {
  world.on('/pages/', (n, path) => {
    const page = Number(path.split('/').pop());
    if (fails(page)) return { status: 500, body: { error: `page ${page % 2 ? 'is locked' : 'cannot be read'}` } };
    if (fails_once(page) && n === 1) return { status: 503, body: { error: 'busy' } };
    return { body: { page, rows: page * 3 } };
  });
  world.on('/nested/', (_, path) => {
    const [outer, middle, inner] = path.split('/').slice(2).map(Number);
    return { body: { outer, middle, inner } };
  });
  world.on('/drift', (n) => ({ body: drift(n) }));
  world.on('/hostile', () => ({ body: HOSTILE }));
  world.on('/broken', () => ({ status: 500, body: { error: 'no' } }));
}

export async function fill(server: Server, world: World): Promise<Gallery> {
  const base = world.url;
  const gate = new Gate();
  world.on('/jobs/cancelled', async (n) => {
    if (n > 12) await gate.opened;
    return { body: { status: 'running', n } };
  });
  const cancelled = await server.run('poll.yaml', { run: 'cancelled', input: { base, job: 'cancelled', count: 100 } });
  await world.called('/jobs/cancelled', 13);
  await server.post('/v1/runs/cancelled/cancel');
  gate.open();
  const gallery: Gallery = {
    url: server.url,
    cancelled,
    nested: await server.run('nested.yaml', { run: 'nested', input: { base } }),
    branch: await server.run('branch.yaml', { run: 'branch' }),
    drift: await server.run('drift.yaml', { run: 'drift', input: { base } }),
    canvas: await server.run('canvas.yaml', { run: 'canvas' }),
    hostile: await server.run('hostile.yaml', { run: 'hostile', input: { base }, labels: { '<b onclick=alert(1)>': HOSTILE.bidi } }),
    approval: await server.run('approval.yaml', { run: 'approval' }),
    pages: await server.run('pages.yaml', { run: 'pages', input: { base, count: PAGES } }),
  };
  for (const run of [gallery.nested, gallery.branch, gallery.drift, gallery.canvas, gallery.hostile, gallery.pages]) await server.result(run);
  return gallery;
}

export default async function setup(): Promise<() => Promise<void>> {
  const [server, world] = await Promise.all([Server.start(), World.start()]);
  answers(world);
  const begun = Date.now();
  const end = async (): Promise<void> => {
    world.end();
    await server.end();
  };
  const gallery = await fill(server, world).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  console.log(`the gallery took ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  process.env.E2E_GALLERY = JSON.stringify(gallery);
  return end;
}
