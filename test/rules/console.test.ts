import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { consoleTypes, type OpenApi } from '../../scripts/generate-console-types.ts';
import { definitionWords } from '../../scripts/generate-definition-words.ts';
import { namesOf, projectRoot, readProjectFile, readSources, type Source } from '../support/source.ts';

const sources = readSources('console/src');

test('the console’s client has the types of openapi.json', () => {
  const openApi = JSON.parse(readProjectFile('openapi.json')) as OpenApi;
  const committed = readProjectFile('console/src/api/generated.ts');
  assert.ok(consoleTypes(openApi) === committed, 'The API has changed. Update the types: npm run console:types');

  const { StoredFile: _file, ...schemas } = openApi.components.schemas;
  assert.ok(consoleTypes({ ...openApi, components: { ...openApi.components, schemas } }) !== committed);
});

test('the editor of automations completes what the server accepts', () => {
  const openApi = JSON.parse(readProjectFile('openapi.json')) as OpenApi;
  const guide = readProjectFile('docs/automations.md');
  const committed = readProjectFile('console/src/pages/automations/definition-words.ts');
  assert.ok(definitionWords(openApi, guide) === committed, 'The definition has changed: npm run console:types');

  const { CreateAutomationRequest: _request, ...schemas } = openApi.components.schemas;
  assert.ok(definitionWords({ ...openApi, components: { schemas } }, guide) !== committed);
  assert.ok(definitionWords(openApi, guide.replace("the signal's payload", '')) !== committed);
});

const makesHtml = ({ text }: Source) =>
  /dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|\beval\(|new Function|rehype-raw|srcDoc/.test(text);

test('the console builds no HTML from text and runs none', () => {
  assert.deepEqual(namesOf(sources.filter(makesHtml)), []);

  for (const text of ['<p dangerouslySetInnerHTML={{ __html }} />', 'node.innerHTML = text', 'eval(text)'])
    assert.ok(makesHtml({ name: 'console/src/app.tsx', text }));
});

/** The typed client, and the two places that need a response as a stream. */
const mayFetch = ['api/client.ts', 'api/stream.ts', 'pages/files/preview.tsx'].map((name) => `console/src/${name}`);
const fetches = ({ text }: Source) => /\bfetch\(/.test(text);

test('the console calls the public API only through its typed client', () => {
  const wrong = sources.filter(fetches).filter(({ name }) => !mayFetch.includes(name));
  assert.deepEqual(namesOf(wrong), [], 'Use call() of console/src/api/client.ts.');
  const stale = mayFetch.filter((name) => !sources.some((source) => source.name === name && fetches(source)));
  assert.deepEqual(stale, [], 'These exceptions are no longer needed: remove them from this test.');

  assert.ok(fetches({ name: 'console/src/app.tsx', text: "await fetch('/api/v1/files')" }));
});

test('the pictures of the documents are small, and each is shown somewhere', () => {
  const guide = readProjectFile('docs/console.md');
  for (const name of readdirSync(join(projectRoot, 'docs/images'))) {
    assert.ok(statSync(join(projectRoot, 'docs/images', name)).size < 150_000, `${name} has more than 150 KB`);
    assert.ok(guide.includes(`(images/${name})`), `docs/console.md does not show ${name}`);
  }
});
