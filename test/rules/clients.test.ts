import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { readSources } from '../../scripts/client-calls.ts';
import { clients } from '../../scripts/generate-clients.ts';
import { synchronousOf } from '../../scripts/python-client.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

const { document, groups } = readSources();

/** In the directory of a half that is otherwise generated. */
const handWritten = ['_sync/runtime.py'];

/** Operations that no group has, with the reason. */
const elsewhere: [RegExp, string][] = [
  [/^developer[A-Z]/, 'the developer paths repeat those of /api/v1'],
  [/^openai[A-Z]/, 'clients of OpenAI call them'],
  [/^call(App)?Mcp$|^getMcp/, 'clients of MCP call them'],
  [/ConsoleSession$|ExternalSignIn$|^listSignInIssuers$|^createSignInLink$/, 'the console signs in by them'],
  [
    /^getAuthorizationServer|^(register|authorize|exchange|revoke)Assistant|AssistantRequest$/,
    'OAuth clients and the console call them',
  ],
  [/^(uploadFile|createUpload|appendToUpload)$/, 'files.upload sends them'],
  [/^(uploadFileByUrl|postInbound)$/, 'their URL is the credential: any program calls it as it is'],
  [/^(download|fetch)[A-Z]\w+$/, 'their URLs are in responses; files.content follows that of a file'],
  [/^exportUser$/, 'users.export has the archive'],
  [/^get(Metrics|OpenApi)$/, 'they are not JSON for programs of users'],
  [/^removeNamedTeamMember$/, 'the older form of removeTeamMember'],
];

test('the guides of the clients name every group', () => {
  for (const page of ['docs/typescript.md', 'docs/python.md']) {
    const [, names = ''] = /grouped as the API is: ([^.]*)\./.exec(readProjectFile(page)) ?? [];
    const named = [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    assert.deepEqual(named.sort(), Object.keys(groups).sort(), page);
  }
});

test('the clients have every operation, or say here why not', () => {
  const grouped = Object.values(groups).flatMap((methods) => Object.values(methods));
  assert.deepEqual(grouped.length, new Set(grouped).size, 'an operation has one name');
  const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId));
  const missing = ids.filter((id) => !grouped.includes(id) && !elsewhere.some(([pattern]) => pattern.test(id)));
  assert.deepEqual(missing, [], 'Give it a group and a name in clients/operations.json, then npm run clients.');
  const both = grouped.filter((id) => elsewhere.some(([pattern]) => pattern.test(id)));
  assert.deepEqual(both, []);
});

for (const { language, source, files, generated } of clients)
  test(`the generated files of the ${language} client are what npm run clients writes`, () => {
    const wanted = files(document, groups);
    for (const directory of generated) {
      const found = readdirSync(join(projectRoot, source, directory), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(?:ts|py)$/.test(entry.name))
        .map((entry) => relative(join(projectRoot, source), join(entry.parentPath, entry.name)));
      const expected = [...wanted.keys()].filter((path) => path.startsWith(`${directory}/`));
      assert.deepEqual(found.filter((path) => !handWritten.includes(path)).sort(), expected.sort());
    }
    for (const [path, text] of wanted) assert.equal(readProjectFile(`${source}/${path}`), text, path);
  });

test('every group is a member of the Python client', () => {
  const text = readProjectFile('clients/python/src/quarry_client/_async/client.py');
  for (const group of Object.keys(groups)) assert.match(text, new RegExp(`self\\.${group} = Async`));
});

test('the synchronous half is the asynchronous one without its words', () => {
  const made = synchronousOf('async def f(x: AsyncPages[A]):\n    async for each in x:\n        await g(each)\n');
  assert.match(made, /^# Written.*\ndef f\(x: Pages\[A\]\):\n {4}for each in x:\n {8}g\(each\)\n$/);
});

test('every group is an entry of the package of its own', () => {
  const { exports } = JSON.parse(readProjectFile('clients/typescript/package.json')) as { exports: object };
  for (const group of Object.keys(groups)) assert.ok(`./${group}` in exports, group);
});
