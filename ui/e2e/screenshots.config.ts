// `npm run screenshots` draws the pictures of docs/reference/console.md again.
import { defineConfig } from '@playwright/test';
import tests from './playwright.config.js';

export default defineConfig({ ...tests, testDir: 'screenshots', projects: [], workers: 1, use: { ...tests.use, viewport: { width: 1180, height: 740 } } });
