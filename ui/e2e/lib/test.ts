// What every test has: the gallery, servers of its own that end with it, and a watch over what pages do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as base, expect, type BrowserContext, type Locator, type Page } from '@playwright/test';
import type { Gallery } from './gallery.js';
import { answers } from './gallery.js';
import { HERE, Server, type Options } from './server.js';
import { World } from './world.js';

export { expect };
export type { Locator, Page };

/** What a page did that none may do. */
export class Watch {
  readonly faults: string[] = [];
  readonly requests: { url: string; method: string; headers: Record<string, string> }[] = [];
  /** A test of failures may expect some messages of the browser. */
  allowed: RegExp[] = [];

  over(context: BrowserContext): void {
    context.on('request', (request) => {
      const url = new URL(request.url());
      this.requests.push({ url: request.url(), method: request.method(), headers: request.headers() });
      if (!['127.0.0.1', 'localhost'].includes(url.hostname) && !['data:', 'blob:'].includes(url.protocol)) this.faults.push(`asks elsewhere: ${url.href}`);
    });
    context.on('console', (message) => {
      const text = message.text();
      // A request that the server refuses or a connection that breaks is no fault of the page.
      const ordinary = /^Failed to load resource|net::ERR_/.test(text);
      if ((message.type() === 'error' && !ordinary) || /content security policy|trusted ?types/i.test(text)) this.faults.push(`console: ${text}`);
    });
    context.on('weberror', (error) => this.faults.push(`error: ${error.error().stack ?? error.error().message}`));
  }

  check(): void {
    const faults = [...new Set(this.faults)].filter((fault) => !this.allowed.some((one) => one.test(fault))).slice(0, 10);
    expect(faults, 'nothing leaves the origin, breaks the policy or throws').toEqual([]);
  }
}

type Fixtures = {
  gallery: Gallery;
  world: World;
  serve: (options?: Options) => Promise<Server>;
  watch: Watch;
};

export const test = base.extend<Fixtures>({
  // While one writes the console: E2E_DIST takes the files of ui/dist in place of those in the program.
  context: async ({ context }, use) => {
    if (process.env.E2E_DIST) {
      await context.route(/\/ui\/[a-z]+\.(js|css)/, async (route) => {
        const name = new URL(route.request().url()).pathname.slice('/ui/'.length);
        const response = await route.fetch({ url: route.request().url().replace(name, 'app.js') });
        await route.fulfill({ response, body: readFileSync(join(HERE, '../dist', name)), contentType: name.endsWith('css') ? 'text/css' : 'text/javascript' });
      });
    }
    await use(context);
  },
  // eslint-disable-next-line no-empty-pattern
  gallery: async ({}, use) => use(JSON.parse(process.env.E2E_GALLERY!) as Gallery),
  // eslint-disable-next-line no-empty-pattern
  world: async ({}, use) => {
    const world = await World.start();
    answers(world);
    await use(world);
    world.end();
  },
  // eslint-disable-next-line no-empty-pattern
  serve: async ({}, use) => {
    const servers: Server[] = [];
    await use(async (options) => {
      const server = await Server.start(options);
      servers.push(server);
      return server;
    });
    for (const server of servers) await server.end();
  },
  watch: [
    async ({ context }, use) => {
      const watch = new Watch();
      watch.over(context);
      await use(watch);
      watch.check();
    },
    { auto: true },
  ],
});
