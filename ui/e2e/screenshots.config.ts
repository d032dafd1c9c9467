// `npm run screenshots` draws the pictures of docs/console.md anew.
import { defineConfig } from '@playwright/test';
import tests from './playwright.config.js';

export default defineConfig({ ...tests, testDir: 'screenshots', use: { ...tests.use, viewport: { width: 1180, height: 740 } } });
