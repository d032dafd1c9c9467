import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from '@playwright/test';
import { BROWSER } from './lib/browser.js';

// benches/console compares times with their budgets. tests/console does not, and leaves out what compares only times.
const MEASURED = process.env.E2E_BUDGETS === '1';

process.env.E2E_HERE ??= dirname(fileURLToPath(import.meta.url));

export default defineConfig({
  testDir: 'tests',
  globalSetup: './lib/gallery.ts',
  outputDir: 'results',
  workers: 2,
  fullyParallel: true,
  projects: [
    { name: 'console', grepInvert: /@timing|@budget/ },
    // Tests that measure time run alone, after the others.
    { name: 'timing', grep: MEASURED ? /@timing|@budget/ : /@timing/, dependencies: ['console'], workers: 1, fullyParallel: false },
  ],
  retries: 0,
  forbidOnly: true,
  timeout: 60_000,
  globalTimeout: 15 * 60_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: BROWSER,
});
