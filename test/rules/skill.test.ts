import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildProgram } from '../../src/cli/program.ts';
import { readProjectFile } from '../support/source.ts';

/* skills/quarry/SKILL.md names only commands, requests and files that exist. test/api/http/docs.test.ts runs its examples. */

const skill = readProjectFile('skills/quarry/SKILL.md');
const { paths } = JSON.parse(readProjectFile('openapi.json')) as { paths: Record<string, object> };
const { commands } = buildProgram().program;

test('the skill has the fields that agents read first, within their limits', () => {
  const [, header = ''] = /^---\n([\s\S]*?)\n---\n/.exec(skill) ?? [];
  const fields = Object.fromEntries([...header.matchAll(/^(\w+): (.+)$/gm)].map(([, name, value]) => [name, value]));
  assert.equal(fields.name, 'quarry', 'The name is that of the folder.');
  assert.ok((fields.description ?? '').length > 100 && (fields.description ?? '').length <= 1024);
  assert.ok(skill.split('\n').length <= 500);
});

test('every command of the skill exists', () => {
  assert.ok(namedCommands(skill).length > 10);
  assert.deepEqual(namedCommands(skill).filter(isMissing), []);

  assert.deepEqual(namedCommands('Run `quarry dance` or `quarry kv twist`.').filter(isMissing), ['dance', 'kv twist']);
});

function namedCommands(markdown: string): string[] {
  return [...markdown.matchAll(/(?:^|`|npx )quarry ([a-z]+)(?: ([a-z]+))?/gm)].map(([, first, second]) =>
    second === undefined ? String(first) : `${first} ${second}`,
  );
}

/** The second word may be an argument of a command that has no commands below it. */
function isMissing(name: string): boolean {
  const [first, second] = name.split(' ');
  const command = commands.find((each) => each.name() === first);
  if (!command || second === undefined || command.commands.length === 0) return !command;
  return !command.commands.some((each) => each.name() === second || each.aliases().includes(second));
}

test('every request of the skill exists', () => {
  assert.ok(namedRequests(skill).length > 8);
  assert.deepEqual(namedRequests(skill).filter(isUnknown), []);

  assert.deepEqual(namedRequests('`PUT /api/v1/kv/{name}` `GET /api/v1/kv/{key}`').filter(isUnknown), [
    'PUT /api/v1/kv/{name}',
  ]);
});

function namedRequests(markdown: string): string[] {
  return [...markdown.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/api\/[^`\s]+)`/g)].map(([, request = '']) => request);
}

function isUnknown(request: string): boolean {
  const [method = '', path = ''] = request.split(' ');
  return !(method.toLowerCase() in (paths[path] ?? {}));
}
