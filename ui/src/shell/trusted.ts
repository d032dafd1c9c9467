// The only Trusted Types policy of the console. It allows addresses of the console's own scripts and nothing else.

interface Policy {
  createScriptURL(address: string): unknown;
}

interface Factory {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): Policy;
}

function own(address: string): string {
  const url = new URL(address, location.origin);
  if (url.origin !== location.origin || !url.pathname.startsWith('/ui/')) {
    throw new TypeError(`${address} is not a script of the console`);
  }
  return url.href;
}

const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;

export const policy: Policy = factory?.createPolicy('windlass', { createScriptURL: own }) ?? { createScriptURL: own };
