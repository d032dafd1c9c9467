// JSON as the server writes it. An integer that a number does not represent exactly is a bigint, which is printed and
// sent with all of its digits. Other modules read and write JSON with these two functions only.

declare global {
  interface JSON {
    parse(text: string, reviver: (name: string, value: unknown, context?: { source?: string }) => unknown): unknown;
    rawJSON(text: string): unknown;
  }
}

/** Reads the digits of an integer. */
export function integer(digits: string): number | bigint {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

export function parse<Value>(text: string): Value {
  // Only these digits can be a number that is not exact, and without a reviver large answers are read faster.
  if (!/\d{16}/.test(text)) return JSON.parse(text) as Value;
  return JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && /^-?\d+$/.test(context?.source ?? '') ? integer(context?.source ?? '') : value) as Value;
}

export function print(value: unknown, indent?: number): string {
  return JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? JSON.rawJSON(String(inner)) : inner), indent);
}
