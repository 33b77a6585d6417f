import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { inShortTurns } from '../../support/speed.ts';

const server = await startTestServer();
after(() => server.close());
const { secretKey } = await server.provision.app();
type Problems = { problems: { line: number; column: number; message: string }[] };

const path = '/api/v1/automations/check';

async function check(text: string): Promise<string[]> {
  const { status, body } = await server.api<Problems>('POST', path, {
    key: secretKey,
    body: { text },
  });
  assert.equal(status, 200);
  return body.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

const charactersMax = 262_144;
const filled = (line: (index: number) => string) => {
  const lines: string[] = [];
  for (let length = 0; length < charactersMax - 100; length += lines.at(-1)?.length ?? 0)
    lines.push(line(lines.length));
  return lines.join('');
};

const expensive: Record<string, string> = {
  'distinct keys': filled((index) => `${index}:\n`),
  'distinct keys in a flow': `{${filled((index) => `k${index}, `)}}`,
  'mistakes on every line': filled((index) => `a${index}: "\n`),
  'the same key': filled(() => 'a: 1\n'),
  'a long list': `[${','.repeat(charactersMax - 2)}]`,
  'deep nesting': '['.repeat(charactersMax),
  anchors: filled((index) => `k${index}: &a${index} 1\n`),
  aliases: `a: &a 1\n${filled((index) => `k${index}: *a\n`)}`,
};

test('no text of an automation keeps the event loop busy', async () => {
  await check('name: warm');
  for (const [name, text] of Object.entries(expensive)) {
    await inShortTurns(50, name, async () => {
      const { status, body } = await server.api<Problems & ErrorBody>('POST', path, { key: secretKey, body: { text } });
      // A text that needs more memory than its process has is refused like one that is too long.
      if (status === 422) assert.equal(body.error.fields?.[0]?.field, 'text', name);
      else
        assert.ok(body.problems.length > 0 && body.problems.length <= 100, `${name}: ${body.problems.length} problems`);
    });
  }
});

test('the first 100 problems are returned, and a text that is nested too deeply is one', async () => {
  assert.deepEqual(await check(`name: x\ntags: ${'['.repeat(200)}`), ['2:107 is nested more than 100 levels deep']);
  const problems = await check('a: 1\n'.repeat(300));
  assert.equal(problems.length, 100);
  assert.equal(problems[0], '2:1 a is already a key of this map');
});

test('aliases that lead nowhere, contain themselves or grow without end are problems with their position', async () => {
  assert.deepEqual(await check('name: x\ntype: *nobody\n'), ['2:7 *nobody has no anchor before it']);
  assert.deepEqual(await check('name: x\nmetadata: &a [1, *a]\n'), ['2:18 *a is part of itself']);
  const bomb = ['a0: &a0 [1,1,1,1,1,1,1,1,1,1]'];
  for (let index = 1; index < 10; index++)
    bomb.push(
      `a${index}: &a${index} [${Array(10)
        .fill(`*a${index - 1}`)
        .join(',')}]`,
    );
  assert.match((await check(bomb.join('\n')))[0] ?? '', /^\d+:\d+ .* more than 150000 values/);
  assert.deepEqual(await check('name: x\nname: y\n'), ['2:1 name is already a key of this map']);
});
