// Paths of loops and iterations: `outer#2/inner` is a loop in iteration 2 of `outer`, `outer#2/inner#7` is one
// of its iterations. Numbers count from 0 as in the server's paths; users see numbers from 1.

export interface Step {
  name: string;
  number?: number;
}

export function parse(path: string): Step[] {
  if (path === '') return [];
  return path.split('/').map((part) => {
    const match = /^(.*)#(\d+)$/.exec(part);
    return match?.[1] === undefined ? { name: part } : { name: match[1], number: Number(match[2]) };
  });
}

export function join(steps: Step[]): string {
  return steps.map((step) => (step.number === undefined ? step.name : `${step.name}#${step.number}`)).join('/');
}

/** Returns the path without numbers, as the graph has it. */
export function plain(path: string): string {
  return parse(path).map((step) => step.name).join('/');
}

export const iterationPath = (loop: string, number: number): string => `${loop}#${number}`;

/** Returns the loop of an iteration, and the iteration's number. */
export function split(path: string): { loop: string; number: number } | undefined {
  const steps = parse(path);
  const last = steps.pop();
  if (last?.number === undefined) return undefined;
  return { loop: join([...steps, { name: last.name }]), number: last.number };
}

/** Returns the path for people: `outer 3 › inner`. */
export function words(path: string): string {
  return parse(path).map((step) => (step.number === undefined ? step.name : `${step.name} ${step.number + 1}`)).join(' › ');
}
