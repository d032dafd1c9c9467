// Figures that tests measure, in results/figures.json and on the screen; docs/reference/console.md quotes them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HERE } from './server.js';

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

/** A budget, or on a machine that is busy so many times what an empty page takes. */
export function budget(most: number, floor: number, times = 3): number {
  return Math.max(most, floor * times);
}
