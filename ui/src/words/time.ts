// Times and durations in words: `12 s`, `4 min 10 s`, `2 h 5 min`, `3 d`.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export function duration(ms: number): string {
  const time = Math.max(0, ms);
  if (time < SECOND) return `${Math.round(time)} ms`;
  if (time < 10 * SECOND) return `${(Math.floor(time / 100) / 10).toFixed(1)} s`;
  if (time < MINUTE) return `${Math.floor(time / SECOND)} s`;
  if (time < HOUR) return two(time, MINUTE, 'min', SECOND, 's');
  if (time < DAY) return two(time, HOUR, 'h', MINUTE, 'min');
  return two(time, DAY, 'd', HOUR, 'h');
}

/** Returns a duration in whole seconds, for a countdown on the screen. */
export function countdown(ms: number): string {
  if (ms < 500) return 'now';
  if (ms < MINUTE) return `${Math.ceil(ms / SECOND)} s`;
  return duration(ms);
}

function two(time: number, large: number, largeWord: string, small: number, smallWord: string): string {
  const whole = Math.floor(time / large);
  const rest = Math.floor((time % large) / small);
  return rest === 0 || whole >= 20 ? `${whole} ${largeWord}` : `${whole} ${largeWord} ${rest} ${smallWord}`;
}

/** Returns an age in its largest unit only: `3 min ago`. */
export function age(ms: number): string {
  if (ms < 5 * SECOND) return 'just now';
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s ago`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ago`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ago`;
  return `${Math.floor(ms / DAY)} d ago`;
}

/** Returns the time of day, with the day if it is not today. */
export function clockTime(at: string, now: number, exact = false): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const pad = (number: number, digits = 2): string => String(number).padStart(digits, '0');
  const ms = exact ? `.${pad(date.getMilliseconds(), 3)}` : '';
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}${ms}`;
  if (new Date(now).toDateString() === date.toDateString()) return time;
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${time}`;
}

export function between(from: string | null | undefined, to: string | null | undefined): number | undefined {
  if (!from || !to) return undefined;
  return Date.parse(to) - Date.parse(from);
}

/** Returns a range of times in this browser's time zone: `14:00 to 15:00`. */
export function hours(from: number, until: number): string {
  const time = (at: number): string => clockTime(new Date(at).toISOString(), at).slice(0, 5);
  return `${time(from)} to ${time(until)}`;
}
