// Figures that tests measure, in results/figures.json and on the screen; docs/reference/console.md quotes them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { HERE } from './server.js';

/** True in benches/console: times are compared with their budgets. */
export const MEASURED = process.env.E2E_BUDGETS === '1';

const file = join(HERE, 'results', 'figures.json');

export function figure(name: string, value: number, unit: string): void {
  mkdirSync(join(HERE, 'results'), { recursive: true });
  let known: Record<string, unknown> = {};
  try {
    known = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch {
    // The first figure makes the file.
  }
  known[name] = { value: Math.round(value * 10) / 10, unit };
  writeFileSync(file, `${JSON.stringify(known, null, 2)}\n`);
  console.log(`  ${name}: ${Math.round(value * 10) / 10} ${unit}`);
}

/** The value that a share of all values does not exceed. */
export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}

/**
 * Prints a time, and compares it with its budget where times are measured (benches/console). Elsewhere the machine may
 * be busy with anything, and a late frame says nothing about the change. `floor` is what the same takes in an empty
 * page: on a slow machine, `times` that is allowed.
 */
export function measure(name: string, value: number, most: number, floor = 0, times = 3): void {
  figure(name, value, 'ms');
  if (MEASURED) expect(value, name).toBeLessThanOrEqual(Math.max(most, floor * times));
}
