// Writes src/api/generated.ts, the types of the API, from its description. With --check it compares instead.
import { readFileSync, writeFileSync } from 'node:fs';
import openapi, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const description = new URL('../docs/openapi.json', import.meta.url);
const generated = new URL('src/api/generated.ts', import.meta.url);
const head = `// Generated from docs/openapi.json by \`npm run types\`. Do not edit.

/** Any value: the description leaves its type open. A bigint is an integer that a number does not hold (see json.ts). */
export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

`;

const json = ts.factory.createTypeReferenceNode('Json');
const withJson = (node) =>
  node.kind === ts.SyntaxKind.UnknownKeyword ? json : ts.visitEachChild(node, withJson, undefined);

const types = await openapi(description, { emptyObjectsUnknown: true });
const text = head + astToString(types.map((type) => (type.name?.text === 'components' ? withJson(type) : type)));

if (!process.argv.includes('--check')) {
  writeFileSync(generated, text);
} else if (readFileSync(generated, 'utf8') !== text) {
  console.error('src/api/generated.ts does not match docs/openapi.json: run `npm run types` and commit the file');
  process.exit(1);
}
