import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunkMarkdown, estimateTokens } from '../../src/content/chunk.ts';
import fc from '../support/fast-check.ts';

const line = fc.oneof(
  fc.constant(''),
  fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => text.replaceAll('\n', ' ')),
  fc.constantFrom(
    '# One',
    '## Two',
    '### Three ###',
    '====',
    '---',
    '- item one',
    '  more of it',
    '| a | b |',
    '```',
    '~~~~',
    'Short. Two! Three?',
  ),
  fc.lorem({ maxCount: 12, mode: 'sentences' }),
  fc.constantFrom('漢字かな交じり文。'.repeat(20), 'x'.repeat(400), '😀'.repeat(50)),
);
const markdown = fc.array(line, { maxLength: 60 }).map((lines) => lines.join('\n').toWellFormed());
const sizes = fc.record({
  targetTokens: fc.integer({ min: 4, max: 80 }),
  overlapTokens: fc.integer({ min: 0, max: 30 }),
});

test('the text at the byte range of a chunk is the chunk, and its lines are those of the range', () => {
  fc.assert(
    fc.property(markdown, sizes, (text, options) => {
      const bytes = Buffer.from(text);
      for (const chunk of chunkMarkdown(text, options)) {
        assert.equal(bytes.subarray(chunk.startByte, chunk.endByte).toString(), chunk.text);
        assert.equal(bytes.subarray(0, chunk.startByte).toString().split('\n').length, chunk.startLine);
        assert.equal(bytes.subarray(0, chunk.endByte).toString().split('\n').length, chunk.endLine);
        assert.notEqual(chunk.text.trim(), '');
      }
    }),
  );
});

test('every visible character lies in a chunk, and chunks go forward', () => {
  fc.assert(
    fc.property(markdown, sizes, (text, options) => {
      const bytes = Buffer.from(text);
      let covered = 0;
      let before = -1;
      for (const chunk of chunkMarkdown(text, options)) {
        assert.equal(bytes.subarray(covered, Math.max(covered, chunk.startByte)).toString().trim(), '');
        assert.ok(chunk.startByte > before && chunk.endByte > covered);
        before = chunk.startByte;
        covered = chunk.endByte;
      }
      assert.equal(bytes.subarray(covered).toString().trim(), '');
    }),
  );
});

test('no chunk exceeds one and a half times the target', () => {
  fc.assert(
    fc.property(markdown, sizes, (text, options) => {
      for (const chunk of chunkMarkdown(text, options))
        assert.ok(estimateTokens(chunk.text) <= Math.ceil(options.targetTokens * 1.5) + 1, chunk.text);
    }),
  );
});

test('a heading stays with the text below it and names the chunk', () => {
  const words = 'Words that fill the section up to its end. '.repeat(8);
  const text = `# Guide\n\n${words}\n\n## Install\n\n${words}\n\n## Use\n\n${words}`;
  const chunks = chunkMarkdown(text, { targetTokens: 90 });
  assert.deepEqual(
    chunks.map((chunk) => chunk.headingPath),
    [['Guide'], ['Guide', 'Install'], ['Guide', 'Use']],
  );
  assert.ok(chunks[1]?.text.startsWith('## Install'));
  assert.ok(!chunks[0]?.text.includes('## Install'));
});

test('the path of headings shows what people read: no addresses, marks or tags', () => {
  const pathOf = (heading: string) => chunkMarkdown(`# ${heading}\n\nText.`)[0]?.headingPath;
  for (const [heading, shown] of [
    ['[Install](https://site.test/a_(b) "Title") the *client*', 'Install the client'],
    ['[`spawn(*args)`](#spawn) and `a_b_c`, snake_case_name', 'spawn(*args) and a_b_c, snake_case_name'],
    ['[![badge](b.svg)](https://site.test) **Bold and *more* of it**', 'badge Bold and more of it'],
    ['<a name="use"></a>Use of `Map<a>` [¶](#use)', 'Use of Map<a> ¶'],
    ['<a title="`x`">T</a> and `c`, a[i][j]', 'T and c, a[i][j]'],
    [String.raw`1\. 2 \* 3 * 4 \[x\]`, '1. 2 * 3 * 4 [x]'],
    ['Map<string, number> [draft] ` tick [link', 'Map<string, number> [draft] ` tick [link'],
    ['<https://site.test/x>', 'https://site.test/x'],
  ] as const)
    assert.deepEqual(pathOf(heading), [shown]);
  assert.deepEqual(pathOf('![](picture.png)'), []);
});

test('an underlined heading opens a section like one with number signs', () => {
  const text = 'Harbour\n=======\n\nShips.\n\nFees\n---\n\nFive a day.\n\nNo heading:\n\n---\n\n- item\n---\n\nEnd.\n';
  const paths = chunkMarkdown(text, { targetTokens: 4, overlapTokens: 0 }).map(({ text, headingPath }) => [
    text.split('\n').at(-1),
    headingPath.join(' > '),
  ]);
  assert.deepEqual(
    paths.filter(([last]) => ['Ships.', 'Five a day.', 'End.'].includes(last ?? '')),
    [
      ['Ships.', 'Harbour'],
      ['Five a day.', 'Harbour > Fees'],
      ['End.', 'Harbour > Fees'],
    ],
  );
});

test('a table row and a code fence that fit are not cut, and what looks like a heading in code is none', () => {
  const fence = `\`\`\`sh\n# not a heading\n${'run the thing\n'.repeat(10)}\`\`\``;
  const table = `| a | b |\n|---|---|\n${'| one | two |\n'.repeat(6)}`;
  const text = `# Top\n\n${'Some prose here. '.repeat(20)}\n\n${fence}\n\n${'More prose here. '.repeat(20)}\n\n${table}`;
  const chunks = chunkMarkdown(text, { targetTokens: 80, overlapTokens: 0 });
  assert.ok(chunks.some((chunk) => chunk.text.includes(fence)));
  assert.ok(chunks.some((chunk) => chunk.text.includes(table.trim())));
  assert.ok(chunks.every((chunk) => chunk.headingPath.join() === 'Top'));
});

test('the next chunk repeats the end of the one before within a section', () => {
  const text = Array.from({ length: 60 }, (_, i) => `Sentence number ${i} of a long paragraph.`).join(' ');
  const chunks = chunkMarkdown(text, { targetTokens: 60, maxTokens: 60, overlapTokens: 20 });
  assert.ok(chunks.length > 5);
  for (const [i, chunk] of chunks.entries()) {
    const next = chunks[i + 1];
    if (next) assert.ok(next.startByte < chunk.endByte);
  }
});

test('a chunk within a definition has the fragment of its term, and what follows has that of the heading', () => {
  const prose = 'Some prose here. '.repeat(30);
  const code = `      \`\`\`\n      open()\n      \`\`\`\n\n      ${prose}`;
  const method = `    - **seek**\n        - ${prose}`;
  const text = `## Usage\n\n- Usage\n\n${prose}\n\n- **open**\n    - ${prose}\n\n${code}\n${method}\n\n${prose}`;
  const fragments = [
    ['Usage', 'usage'],
    ['**open**', 'file.open'],
    ['**seek**', 'file.seek'],
  ] as const;
  const chunks = chunkMarkdown(text, { targetTokens: 60, maxTokens: 100, overlapTokens: 20, fragments });
  const found = chunks.map(({ fragment }) => fragment);
  assert.deepEqual(
    found.filter((fragment, at) => fragment !== found[at - 1]),
    ['usage', 'file.open', 'file.seek', 'usage'],
  );
  const own = chunkMarkdown(`## Usage\n\n${prose}\n\n- **open**\n    - Opens it.`, {
    targetTokens: 120,
    maxTokens: 180,
    fragments,
  });
  assert.deepEqual(
    own.map((chunk) => [chunk.fragment, chunk.text.startsWith('- **open**')]),
    [
      ['usage', false],
      ['file.open', true],
    ],
  );
});

test('a chunk has the fragment of its heading, or of the nearest one above that has one', () => {
  const prose = 'Some prose here. '.repeat(30);
  const text = `${prose}\n\n## Usage\n\n${prose}\n\n### Limits\n\n${prose}\n\n## Usage\n\n${prose}\n\n## Other\n\n${prose}`;
  const fragments = [
    ['Removed', 'removed'],
    ['Usage', 'usage'],
    ['Usage', 'usage-1'],
  ] as const;
  const chunks = chunkMarkdown(text, { targetTokens: 80, maxTokens: 200, fragments });
  assert.deepEqual([...new Set(chunks.map(({ fragment }) => fragment))], [undefined, 'usage', 'usage-1']);
  assert.equal(chunks.find(({ headingPath }) => headingPath.at(-1) === 'Limits')?.fragment, 'usage');
  assert.equal(chunks.find(({ headingPath }) => headingPath.at(-1) === 'Other')?.fragment, undefined);
});
