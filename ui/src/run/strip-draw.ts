// Draws a strip of iterations: durations at the top, how they ended in the middle, ticks for failures at the bottom.
import type { Strip, StripCell } from '../api/types';

export const HEIGHT = 64;
const DURATIONS = 18;
const STATES = { top: 24, height: 22 };
const TICKS = { top: 51, height: 9 };

export interface View {
  from: number;
  to: number;
}

export interface Marks {
  chosen: number | undefined;
  running: number | undefined;
  drag: View | undefined;
  /** Iterations that may still begin. */
  planned: View;
}

type Colours = Record<'good-soft' | 'bad' | 'off' | 'hold' | 'run' | 'soft' | 'line' | 'text' | 'accent', string>;

export function colours(element: Element): Colours {
  // A token may be `light-dark(…)`, which a canvas does not accept, so the browser computes the colour.
  const probe = document.createElement('span');
  element.append(probe);
  const read = (name: string): string => {
    probe.style.setProperty('color', `var(--${name})`);
    return getComputedStyle(probe).color;
  };
  const names = ['good-soft', 'bad', 'off', 'hold', 'run', 'soft', 'line', 'text', 'accent'] as const;
  const found = Object.fromEntries(names.map((name) => [name, read(name)])) as Colours;
  probe.remove();
  return found;
}

export function draw(canvas: HTMLCanvasElement, strip: Strip | undefined, view: View, marks: Marks): void {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(HEIGHT * scale)) canvas.height = Math.round(HEIGHT * scale);
  const context = canvas.getContext('2d');
  if (!context || width === 0) return;
  const colour = colours(canvas.parentElement ?? canvas);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, HEIGHT);
  const span = Math.max(1, view.to - view.from);
  const place = (number: number): number => ((number - view.from) / span) * width;
  context.fillStyle = colour.line;
  context.fillRect(0, STATES.top + STATES.height, width, 1);
  const longest = Math.max(1, ...(strip?.cells ?? []).map((cell) => cell.max_ms ?? 0));
  for (const cell of strip?.cells ?? []) {
    const [left, right] = [place(cell.from), place(cell.to)];
    if (right < 0 || left > width) continue;
    drawCell(context, colour, cell, left, Math.max(1, right - left - (right - left > 3 ? 1 : 0)), longest);
  }
  context.fillStyle = colour.bad;
  for (const failed of strip?.failed ?? []) {
    const left = place(failed);
    if (left >= 0 && left < width) context.fillRect(left, TICKS.top, Math.max(1.5, Math.min(6, width / span - 1)), TICKS.height);
  }
  context.strokeStyle = colour.line;
  for (let number = marks.planned.from; number < marks.planned.to; number += 1) {
    context.strokeRect(place(number) + 0.5, STATES.top + 6.5, Math.max(1, width / span - 2), STATES.height - 7);
  }
  if (marks.running !== undefined) outline(context, colour.run, place(marks.running), Math.max(3, width / span - 1));
  if (marks.drag) {
    context.globalAlpha = 0.25;
    context.fillStyle = colour.accent;
    context.fillRect(place(marks.drag.from), 0, place(marks.drag.to) - place(marks.drag.from), HEIGHT);
    context.globalAlpha = 1;
  }
  if (marks.chosen !== undefined) caret(context, colour.text, place(marks.chosen), Math.max(2, width / span));
}

function drawCell(context: CanvasRenderingContext2D, colour: Colours, cell: StripCell, left: number, width: number, longest: number): void {
  const total = cell.succeeded + cell.failed + cell.timed_out + cell.cancelled + cell.skipped;
  const mean = cell.mean_ms ?? 0;
  const high = Math.max(1, (mean / longest) * DURATIONS);
  context.fillStyle = colour.soft;
  context.globalAlpha = 0.55;
  context.fillRect(left, DURATIONS + 2 - high, width, high);
  const peak = ((cell.max_ms ?? 0) / longest) * DURATIONS;
  context.fillRect(left, DURATIONS + 2 - peak, width, 1);
  context.globalAlpha = 1;
  const shares: [number, string][] = [
    [cell.failed + cell.timed_out, colour.bad],
    [cell.succeeded_with_failures, colour.hold],
    [cell.cancelled + cell.skipped, colour.off],
    [cell.succeeded - cell.succeeded_with_failures, colour['good-soft']],
  ];
  let top = STATES.top;
  for (const [count, fill] of shares) {
    if (count === 0) continue;
    const high = Math.max(total === 1 ? 0 : 2, (count / Math.max(1, total)) * STATES.height);
    context.fillStyle = fill;
    // The height of a single iteration shows its status, too: high for failed, lower for succeeded, low for skipped.
    const low = total !== 1 || fill === colour.bad ? 0 : fill === colour.off ? 15 : fill === colour.hold ? 3 : 6;
    context.fillRect(left, top + low, width, Math.min(high, STATES.top + STATES.height - top) - low);
    top += high;
  }
  if (cell.retried > 0) {
    context.fillStyle = colour.hold;
    context.fillRect(left, STATES.top - 2, width, 2);
  }
}

function outline(context: CanvasRenderingContext2D, colour: string, left: number, width: number): void {
  context.strokeStyle = colour;
  context.setLineDash([3, 2]);
  context.strokeRect(left + 0.5, STATES.top + 0.5, width, STATES.height - 1);
  context.setLineDash([]);
}

function caret(context: CanvasRenderingContext2D, colour: string, left: number, width: number): void {
  const middle = left + width / 2;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(left - 0.5, STATES.top - 3, Math.max(3, width), STATES.height + 5);
  context.lineWidth = 1;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(middle - 5, STATES.top - 9);
  context.lineTo(middle + 5, STATES.top - 9);
  context.lineTo(middle, STATES.top - 3);
  context.fill();
}
