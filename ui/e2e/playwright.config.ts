import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from '@playwright/test';
import { BROWSER } from './lib/browser.js';

process.env.E2E_HERE ??= dirname(fileURLToPath(import.meta.url));

export default defineConfig({
  testDir: 'tests',
  globalSetup: './lib/gallery.ts',
  outputDir: 'results',
  // Figures of time are measured here, so nothing runs beside them.
  workers: 1,
  fullyParallel: false,
  retries: 0,
  forbidOnly: true,
  timeout: 60_000,
  globalTimeout: 15 * 60_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: BROWSER,
});
