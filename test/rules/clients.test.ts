import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSources, typescriptFiles } from '../../scripts/generate-clients.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

const { document, groups } = readSources();

/** Operations that no group has, with the reason. */
const elsewhere: [RegExp, string][] = [
  [/^developer[A-Z]/, 'the developer paths repeat those of /api/v1'],
  [/^openai[A-Z]/, 'clients of OpenAI call them'],
  [/^call(App)?Mcp$|^getMcp/, 'clients of MCP call them'],
  [/ConsoleSession$|ExternalSignIn$|^listSignInIssuers$/, 'the console signs in by them'],
  [/^(uploadFile|createUpload|appendToUpload)$/, 'files.upload sends them'],
  [/^(uploadFileByUrl|postInbound)$/, 'their URL is the credential: any program calls it as it is'],
  [/^(download|fetch)[A-Z]\w+$/, 'their URLs are in responses; files.content follows that of a file'],
  [/^get(Metrics|OpenApi)$/, 'they are not JSON for programs of users'],
  [/^removeNamedTeamMember$/, 'the older form of removeTeamMember'],
];

test('the clients have every operation, or say here why not', () => {
  const grouped = Object.values(groups).flatMap((methods) => Object.values(methods));
  assert.deepEqual(grouped.length, new Set(grouped).size, 'an operation has one name');
  const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId));
  const missing = ids.filter((id) => !grouped.includes(id) && !elsewhere.some(([pattern]) => pattern.test(id)));
  assert.deepEqual(missing, [], 'Give it a group and a name in clients/operations.json, then npm run clients.');
  const both = grouped.filter((id) => elsewhere.some(([pattern]) => pattern.test(id)));
  assert.deepEqual(both, []);
});

test('the generated files of the TypeScript client are what npm run clients writes', () => {
  const directory = 'clients/typescript/src/generated';
  const wanted = typescriptFiles(document, groups);
  assert.deepEqual(readdirSync(join(projectRoot, directory)).sort(), [...wanted.keys()].sort());
  for (const [name, text] of wanted) assert.equal(readProjectFile(`${directory}/${name}`), text, name);
});

test('every group is an entry of the package of its own', () => {
  const { exports } = JSON.parse(readProjectFile('clients/typescript/package.json')) as { exports: object };
  for (const group of Object.keys(groups)) assert.ok(`./${group}` in exports, group);
});
