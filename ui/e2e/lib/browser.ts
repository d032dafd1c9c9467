// Debian's Chromium, or the one that CHROMIUM names.
const root = process.getuid?.() === 0;

export const BROWSER = {
  browserName: 'chromium' as const,
  headless: true,
  viewport: { width: 1280, height: 800 },
  // Recording slows what is measured.
  trace: (process.env.E2E_TRACE ? 'retain-on-failure' : 'off') as 'retain-on-failure' | 'off',
  screenshot: 'only-on-failure' as const,
  launchOptions: {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // No name leads anywhere: what works here works without a network.
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost', ...(root ? ['--no-sandbox'] : [])],
  },
};
