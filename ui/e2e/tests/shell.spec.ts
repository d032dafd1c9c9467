// The shell: what it loads, how fast it is there, who is let in, and what hostile data does to it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Console } from '../lib/console.js';
import { figure, measure, quantile } from '../lib/figures.js';
import { HOSTILE } from '../lib/gallery.js';
import { HERE, program } from '../lib/server.js';
import { expect, test, type Page } from '../lib/test.js';

const TOKEN = 'tok-4f1d9c7e2b8a60535e';
const VIEW = 'view-90ab12cd34ef56';
const WORKS = 'works-78ab12cd34ef90';

/** A file for a token; it goes with the test's folder. */
function token(name: string, text: string): string {
  const path = test.info().outputPath(name);
  writeFileSync(path, text);
  return path;
}

/** Every screen there is, for a run. */
async function screens(console: Console, run: string): Promise<void> {
  const { page } = console;
  await console.open();
  await console.listed();
  await page.keyboard.press('Control+k');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.keyboard.press('Escape');
  await console.open(`/runs/${encodeURIComponent(run)}`);
  await expect(console.why).not.toBeEmpty();
  for (const tab of await page.getByRole('tab').all()) {
    await tab.click();
    await expect(tab).toHaveAttribute('aria-selected', 'true');
    await console.shown();
  }
}

test('1, 2: nothing leaves the origin and no policy is broken, on every screen', async ({ page, gallery, watch }) => {
  const console = new Console(page, gallery.url);
  for (const run of [gallery.nested, gallery.canvas, gallery.pages]) await screens(console, run);
  expect(watch.requests.length).toBeGreaterThan(10);
  expect(watch.requests.map(({ url }) => new URL(url).origin).filter((origin) => origin !== gallery.url)).toEqual([]);
});

test('1, 2: the watch over pages sees what it is there for', async ({ page, gallery, watch }) => {
  const console = new Console(page, gallery.url);
  await console.open();
  await console.listed();
  await page.evaluate(() => {
    try {
      document.body.insertAdjacentHTML('beforeend', '<b>x</b>');
    } catch {
      // Refused, as it should be.
    }
    const image = new Image();
    image.src = 'http://elsewhere.example/x.png';
    document.body.append(image);
  });
  await expect.poll(() => watch.faults.some((fault) => /TrustedHTML/.test(fault)), 'a markup of text is seen').toBe(true);
  await expect.poll(() => watch.faults.some((fault) => /elsewhere\.example/.test(fault)), 'a request to elsewhere is seen').toBe(true);
  watch.allowed = [/TrustedHTML/, /elsewhere\.example/];
});

test('a page that follows no run shows that the server is connected', async ({ page, gallery }) => {
  for (const path of ['/ui/workflows', '/ui/docs']) {
    await page.goto(gallery.url + path);
    await expect(page.getByTestId('server-state')).toHaveAttribute('data-state', 'connected');
  }
});

test('an address that does not exist is reported', async ({ page, gallery }) => {
  await page.goto(`${gallery.url}/ui/nowhere`);
  await expect(page.getByRole('alert')).toContainText('Page not found: /ui/nowhere');
  await page.getByRole('link', { name: 'Show all runs' }).click();
  await expect(page.getByRole('grid')).toBeVisible();
});

for (const width of [390, 320]) {
  test(`at ${width} px no link is under the state of the connection`, async ({ page, gallery }) => {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(`${gallery.url}/ui/workflows`);
    await expect(page.getByTestId('server-state')).toHaveAttribute('data-state', 'connected');
    const state = (await page.getByTestId('server-state').boundingBox())!;
    // What the bar cuts off is not painted.
    const bar = page.getByRole('navigation', { name: 'Screens' });
    const edge = (await bar.boundingBox())!;
    expect(edge.x + edge.width).toBeLessThanOrEqual(state.x);
    for (const link of await bar.getByRole('link').all()) {
      const box = await link.boundingBox();
      if (box) expect(box.x + box.width).toBeLessThanOrEqual(edge.x + edge.width + 8);
    }
  });
}

test('3: sizes are within the budgets, and a run loads no editor', async ({ page, gallery, watch }) => {
  const dist = resolve(HERE, '../dist');
  const packed = async (name: string): Promise<number> => gzipSync(await (await page.request.get(`${gallery.url}/ui/${name}`)).body(), { level: 9 }).length;
  const script = (await packed('app.js')) + (await packed('worker.js'));
  const style = await packed('app.css');
  const editor = await packed('editor.js');
  // The manual has 19 KiB of its own, which is loaded only when it is read.
  const all = readdirSync(dist).filter((name) => name !== 'docs.js').reduce((sum, name) => sum + gzipSync(readFileSync(join(dist, name)), { level: 9 }).length, 0);
  figure('script of the shell, gzipped', script / 1024, 'KiB');
  figure('style of the shell, gzipped', style / 1024, 'KiB');
  figure('script of the editor, gzipped', editor / 1024, 'KiB');
  figure('files of the console, gzipped', all / 1024, 'KiB');
  expect(script).toBeLessThanOrEqual(45 * 1024);
  expect(style).toBeLessThanOrEqual(8 * 1024);
  expect(editor).toBeLessThanOrEqual(130 * 1024);
  expect(all).toBeLessThanOrEqual(240 * 1024);
  const console = new Console(page, gallery.url);
  await console.open(`/runs/${gallery.nested}`);
  await expect(console.why).not.toBeEmpty();
  await console.shown();
  expect(watch.requests.filter(({ url }) => /edit(or)?\.js/.test(url))).toEqual([]);
});

test('4: the list is painted and answers within its budget', { tag: '@budget' }, async ({ browser, gallery, world }) => {
  world.on('/empty', () => ({ html: '<!doctype html><title>x</title><p>x</p>' }));
  const paint = (page: Page): Promise<number> => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN);
  const [paints, ready, floors]: number[][] = [[], [], []];
  for (let n = 0; n < 7; n += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${world.url}/empty`);
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    floors.push(await paint(page));
    // The moment at which the first row of the list can be used.
    await page.addInitScript(() => {
      const look = (): void => {
        if (document.querySelector('[role=grid] [role=row][data-run]')) (window as unknown as { usable: number }).usable = performance.now();
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    await page.goto(`${gallery.url}/ui/`);
    await page.waitForFunction(() => 'usable' in window);
    paints.push(await paint(page));
    ready.push(await page.evaluate(() => (window as unknown as { usable: number }).usable));
    await context.close();
  }
  figure('first contentful paint of an empty page, median', quantile(floors, 0.5), 'ms');
  measure('first contentful paint, median', quantile(paints, 0.5), 300, quantile(floors, 0.5), 5);
  measure('list of runs usable, median', quantile(ready, 0.5), 500, quantile(floors, 0.5), 8);
});

test('21: markup, script addresses, bidi and ANSI in data are inert and visible', async ({ page, gallery, watch }) => {
  const console = new Console(page, gallery.url);
  const dialogs: string[] = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const inert = async (): Promise<void> => {
    const seen = await page.evaluate(() => ({
      owned: (window as unknown as { owned?: number }).owned,
      images: [...document.images].map((image) => image.getAttribute('src')).filter((src) => !src?.startsWith('/ui/')),
      links: [...document.querySelectorAll('a[href], area[href], form[action]')].map((link) => link.getAttribute('href') ?? link.getAttribute('action') ?? '').filter((href) => /^\s*(javascript|data|vbscript):/i.test(href)),
      handlers: [...document.querySelectorAll('*')].flatMap((element) => element.getAttributeNames().filter((name) => name.startsWith('on'))),
      hidden: /[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.innerText + [...document.querySelectorAll('[title],[aria-label]')].map((one) => `${one.getAttribute('title')}${one.getAttribute('aria-label')}`).join('')),
      frames: document.querySelectorAll('iframe, object, embed').length,
    }));
    expect(seen).toEqual({ owned: undefined, images: [], links: [], handlers: [], hidden: false, frames: 0 });
  };
  await console.open('/?text=hostile');
  await expect(console.row(gallery.hostile)).toContainText('<img src=x onerror=window.owned=1>');
  await inert();
  await console.open(`/runs/${gallery.hostile}`);
  await expect(console.why).not.toBeEmpty();
  for (const tab of await page.getByRole('tab').all()) {
    await tab.click();
    await console.shown();
    await inert();
  }
  // The data itself is there, with what cannot be seen made visible.
  await console.open(`/runs/${gallery.hostile}?loop=rounds&it=2&tab=data`);
  await expect(page.getByText(HOSTILE.html.slice(0, 9)).first()).toBeVisible();
  await expect(page.getByText(/U\+202E/).first()).toBeVisible();
  await inert();
  expect(dialogs).toEqual([]);
  watch.check();
});

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('22: the token is sent once and stored nowhere; the session outlives the server', async ({ page, serve, watch, context }) => {
  const server = await serve({ args: ['--token-file', token('token', TOKEN)], token: TOKEN });
  await server.run('branch.yaml', { run: 'one' });
  await server.result('one');
  const console = new Console(page, server.url);
  const logged: string[] = [];
  page.on('console', (message) => logged.push(message.text()));
  await console.open();
  await signIn(page, 'wrong');
  await expect(page.getByRole('alert')).toContainText('does not take this token');
  await signIn(page, TOKEN);
  await expect(console.row('one')).toBeVisible();
  await console.open('/runs/one');
  await expect(console.why).not.toBeEmpty();

  const bearing = watch.requests.filter(({ headers }) => Object.values(headers).some((value) => value.includes(TOKEN)));
  expect(bearing.map(({ method, url }) => `${method} ${new URL(url).pathname}`)).toEqual(['POST /v1/session']);
  expect(watch.requests.filter(({ url }) => url.includes(TOKEN))).toEqual([]);
  const kept = await page.evaluate(async () => [
    document.documentElement.outerHTML,
    document.cookie,
    JSON.stringify({ ...localStorage }),
    JSON.stringify({ ...sessionStorage }),
    JSON.stringify(await indexedDB.databases()),
    JSON.stringify(await caches.keys()),
    JSON.stringify(history.state),
    [...document.querySelectorAll('input')].map((input) => input.value).join(),
  ]);
  for (const place of [...kept, ...logged, server.said]) expect(place).not.toContain(TOKEN);
  const cookies = await context.cookies();
  expect(cookies).toHaveLength(1);
  expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
  expect(cookies[0].value).not.toContain(TOKEN);

  await server.kill();
  await server.begin();
  await page.reload();
  await expect(console.why).not.toBeEmpty();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByLabel('Token')).toBeVisible();
  expect(await context.cookies()).toEqual([]);
});

test('22: `windlass ui` opens a session with a ticket that is good once', async ({ page, serve, context }) => {
  const server = await serve({ args: ['--token-file', token('token', TOKEN)], token: TOKEN });
  await server.run('approval.yaml', { run: 'asks' });
  const said = execFileSync(program(), ['ui', '--state', join(server.dir, 'state')], { encoding: 'utf8', env: { PATH: process.env.PATH } });
  const address = /http:\S+#ticket=\S+/.exec(said)![0];
  const console = new Console(page, server.url);
  await page.goto(address);
  await expect(console.row('asks')).toBeVisible();
  expect(page.url()).not.toContain('ticket');
  await context.clearCookies();
  await page.goto('about:blank');
  await page.goto(address);
  await expect(page.getByLabel('Token')).toBeVisible();
});

test('22: another site can neither act nor read, but may link', async ({ page, serve, world, watch }) => {
  const server = await serve({ args: ['--token-file', token('token', TOKEN)], token: TOKEN });
  await server.run('approval.yaml', { run: 'asks' });
  const console = new Console(page, server.url);
  await console.open();
  await signIn(page, TOKEN);
  await expect(console.row('asks')).toBeVisible();

  // `localhost` is another site than `127.0.0.1`.
  const other = world.url.replace('127.0.0.1', 'localhost');
  world.on('/page', () => ({ html: `<a id=link href="${server.url}/ui/runs/asks">a run</a><form id=form method=post action="${server.url}/v1/runs/asks/cancel"><button>x</button></form>` }));
  watch.allowed = [/CORS|cross-origin|blocked/i];
  await page.goto(`${other}/page`);
  const read = await page.evaluate(async (url) => fetch(`${url}/v1/runs`, { credentials: 'include' }).then(() => 'read', () => 'refused'), server.url);
  expect(read).toBe('refused');
  await page.evaluate(async (url) => fetch(`${url}/v1/runs/asks/cancel`, { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(() => {}), server.url);
  const refused = page.waitForResponse((response) => response.url().endsWith('/cancel'));
  await page.locator('#form button').click();
  expect((await refused).status()).toBe(403);
  expect((await server.status('asks')).status).toBe('Waiting');

  await page.goto(`${other}/page`);
  await page.locator('#link').click();
  await expect(page).toHaveURL(`${server.url}/ui/runs/asks`);
  await expect(console.why).toContainText('approved');
});

test('23: who may only look has no buttons, and a forged request gets 403', async ({ page, serve }) => {
  const server = await serve({ args: ['--token-file', token('tokens', `admin admin ${TOKEN}\nview view ${VIEW}\noperate operate ${WORKS}\n`)], token: TOKEN });
  await server.run('approval.yaml', { run: 'asks' });
  const console = new Console(page, server.url);
  await console.open();
  await signIn(page, VIEW);
  await expect(console.row('asks')).toBeVisible();
  await expect(page.getByTestId('read-only')).toBeVisible();
  await expect(page.getByRole('checkbox')).toHaveCount(0);
  const acts = /^(pause|resume|cancel|retry|signal|send)\b/i;
  await expect(page.getByRole('button', { name: acts })).toHaveCount(0);
  await console.open('/runs/asks');
  await expect(console.why).not.toBeEmpty();
  await expect(page.getByRole('button', { name: acts })).toHaveCount(0);
  const forged = await page.evaluate(async () => {
    const statuses: number[] = [];
    for (const [path, body] of [['/v1/runs/asks/cancel', '{}'], ['/v1/runs/asks/signal', '{"name":"approved"}'], ['/v1/runs', '{"text":"{}"}'], ['/v1/runs/bulk', '{"do":"cancel","runs":["asks"]}']]) {
      statuses.push((await fetch(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).status);
    }
    return statuses;
  });
  expect(forged).toEqual([403, 403, 403, 403]);
  expect((await server.status('asks')).status).toBe('Waiting');
  // An operator controls runs, and has no buttons that change a saved workflow.
  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(page, WORKS);
  await expect(page.getByTestId('operator')).toBeVisible();
  await expect(page.getByRole('button', { name: /^cancel\b/i })).toBeVisible();
  await console.open('/edit');
  await expect(page.getByRole('button', { name: /^run\b/i })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save' })).toHaveCount(0);
  await console.open('/runs/asks');
  // The same person with all rights has them.
  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(page, TOKEN);
  await expect(page.getByRole('button', { name: /^cancel\b/i })).toBeVisible();
});

test('23: `--ui read` makes every browser one that looks', async ({ page, serve }) => {
  const server = await serve({ args: ['--ui', 'read'] });
  await server.run('approval.yaml', { run: 'asks' });
  const console = new Console(page, server.url);
  await console.open('/runs/asks');
  await expect(console.why).not.toBeEmpty();
  await expect(page.getByTestId('read-only')).toBeVisible();
  await expect(page.getByRole('button', { name: /^(pause|cancel|signal)\b/i })).toHaveCount(0);
  expect(await page.evaluate(async () => (await fetch('/v1/runs/asks/cancel', { method: 'POST' })).status)).toBe(403);
});
