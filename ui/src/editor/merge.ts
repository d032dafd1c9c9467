// Finds the differences of two texts, line by line, so that a user can choose.

/** Lines that are the same in both texts, or the different lines of each text. */
export interface Hunk {
  mine: string[];
  theirs: string[];
  same: boolean;
}

/** Maximum number of compared pairs of lines. With more, everything between the equal ends is one hunk. */
const MOST = 4_000_000;

export function hunks(mine: string, theirs: string): Hunk[] {
  const a = mine.split('\n');
  const b = theirs.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const list: Hunk[] = [];
  const add = (same: boolean, left: string[], right: string[]): void => {
    if (left.length + right.length === 0) return;
    const last = list.at(-1);
    if (last && last.same === same) {
      last.mine.push(...left);
      last.theirs.push(...right);
    } else list.push({ mine: [...left], theirs: [...right], same });
  };
  add(true, a.slice(0, head), b.slice(0, head));
  between(a.slice(head, a.length - tail), b.slice(head, b.length - tail), add);
  add(true, a.slice(a.length - tail), b.slice(b.length - tail));
  return list;
}

/** Returns for each part whether my lines are those of the text that both began with, so only the other text changed. */
export function onlyTheirs(parts: Hunk[], begun: string): boolean[] {
  const own = places(hunks(parts.flatMap((part) => part.mine).join('\n'), begun)).filter(({ part }) => !part.same);
  return places(parts).map(({ from, to }) => !own.some((one) => (one.from < to && from < one.to) || ((from === to || one.from === one.to) && one.from <= to && from <= one.to)));
}

/** Returns the parts with the numbers of my lines: the first one, and the one after the last. */
function places(parts: Hunk[]): { part: Hunk; from: number; to: number }[] {
  let to = 0;
  return parts.map((part) => ({ part, from: to, to: (to += part.mine.length) }));
}

/** Finds the longest common lines by the table of their lengths. */
function between(a: string[], b: string[], add: (same: boolean, mine: string[], theirs: string[]) => void): void {
  if (a.length * b.length > MOST) return add(false, a, b);
  const width = b.length + 1;
  const length = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => length[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) length[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]];
    if (left !== undefined && left === right) {
      add(true, [left], [left]);
      i += 1;
      j += 1;
    } else if (right === undefined || (left !== undefined && at(i + 1, j) >= at(i, j + 1))) {
      add(false, left === undefined ? [] : [left], []);
      i += 1;
    } else {
      add(false, [], [right]);
      j += 1;
    }
  }
}
