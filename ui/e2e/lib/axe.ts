// What axe finds, in the looks that the console has.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '@playwright/test';
import type { AxeResults } from 'axe-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds against WCAG 2.2 A and AA. */
export async function faults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (where: Document, options: unknown) => Promise<AxeResults> } }).axe;
    // The experimental rule takes the small second line of a step for its label.
    const rules = { 'label-content-name-mismatch': { enabled: false } };
    const found = await axe.run(document, { preload: false, rules, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] });
    return found.violations.map((one) => `${one.id}: ${one.nodes.length}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} (${node.any.map((check) => check.message).join('; ')})`).join(' | ')}`);
  });
}

export const LOOKS = [
  { name: 'light', use: { colorScheme: 'light' } },
  { name: 'dark', use: { colorScheme: 'dark' } },
  { name: 'forced colours', use: { forcedColors: 'active' } },
  { name: '320 px wide', use: { viewport: { width: 320, height: 640 } } },
] as const;
