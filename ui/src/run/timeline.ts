// Times on a line: busy times have their length, and long idle times between them are folded.

export interface Span {
  from: number;
  to: number;
}

export interface Fold extends Span {
  /** The place on the line, from 0 to 1. */
  left: number;
  right: number;
}

export interface Scale {
  place: (time: number) => number;
  folds: Fold[];
}

/** An idle time that is longer than this share of the busy time is folded to `FOLDED`. */
const IDLE = 0.12;
const FOLDED = 0.03;

export function scale(busy: Span[]): Scale {
  const merged = merge(busy);
  const total = Math.max(1, merged.reduce((sum, span) => sum + span.to - span.from, 0));
  const pieces: { span: Span; length: number; fold: boolean }[] = [];
  merged.forEach((span, index) => {
    const before = merged[index - 1];
    if (before) {
      const gap = { from: before.to, to: span.from };
      const fold = gap.to - gap.from > total * IDLE;
      pieces.push({ span: gap, length: fold ? total * FOLDED : gap.to - gap.from, fold });
    }
    pieces.push({ span, length: Math.max(span.to - span.from, total * 0.004), fold: false });
  });
  const length = Math.max(1, pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  const placed = pieces.map((piece) => {
    const left = at / length;
    at += piece.length;
    return { ...piece.span, left, right: at / length, fold: piece.fold };
  });
  const place = (time: number): number => {
    const first = placed[0];
    if (!first || time <= first.from) return 0;
    const here = placed.find((piece) => time <= piece.to);
    if (!here) return 1;
    const share = here.to === here.from ? 0 : (time - here.from) / (here.to - here.from);
    return here.left + share * (here.right - here.left);
  };
  return { place, folds: placed.filter((piece) => piece.fold) };
}

function merge(spans: Span[]): Span[] {
  const sorted = spans.filter((span) => span.to >= span.from).sort((a, b) => a.from - b.from);
  const merged: Span[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else merged.push({ ...span });
  }
  return merged;
}
