import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesOf, readSources, type Source } from '../support/source.ts';

/* What a stranger sent is decompressed and parsed by src/content/parse and src/content/picture alone, which run in the parser processes. */

const sources = readSources('src');
const isParser = ({ name }: Source) => /^src\/content\/(?:parse|picture)\//.test(name);

/** May decompress outside: each bounds what comes out. */
const decompressors: Record<string, string> = {
  'src/http/body/body.ts': 'undoes the Content-Encoding of request bodies, within the bound of their route',
  'src/http/openapi/site.ts': 'the pages that the package itself contains',
  'src/lib/zip-writer.ts': 'only compresses',
  'src/backup/parts.ts': "reads and writes the operator's own backups",
};

const packagesOf = ({ text }: Source) =>
  [...text.matchAll(/(?:from|import\()\s*'((?:@[\w-]+\/)?[\w-]+)(?:\/[^']*)?'/g)].map((match) => match[1] ?? '');

/** The libraries that read documents: whatever packages the parsers import. */
const readers = new Set(sources.filter(isParser).flatMap(packagesOf));

const decompresses = ({ text }: Source) => /'(?:node:)?zlib'|\bDecompressionStream\b/.test(text);
const readsDocuments = (source: Source) => packagesOf(source).some((name) => readers.has(name));
/** Imports code of the parsers, not only types, the pool that runs them, their errors, or the names of page types. */
const callsParsers = ({ text }: Source) =>
  [...text.matchAll(/^(?:import|export) (?!type\b)[^;]*? from '([^']*\/(?:parse|picture)\/[^']+)'/gm)].some(
    ([, target = '']) => !/\/parse\/(?:pool\/[\w-]+|types|html\/page-types)\.ts$/.test(target),
  );

test('only the parsers decompress, but for request bodies and backups', () => {
  const wrong = sources.filter((source) => !isParser(source) && decompresses(source));
  assert.deepEqual(namesOf(wrong), Object.keys(decompressors).sort(), 'Have the parser processes undo it.');

  assert.ok(decompresses({ name: 'src/a.ts', text: "import { gunzipSync } from 'node:zlib';" }));
  assert.ok(decompresses({ name: 'src/a.ts', text: "body.pipeThrough(new DecompressionStream('gzip'))" }));
});

test('only the parsers use libraries that read documents', () => {
  const wrong = sources.filter((source) => !isParser(source) && readsDocuments(source));
  assert.deepEqual(namesOf(wrong), [], 'Make it a task of the parser processes: src/content/parse/pool/worker.ts.');

  assert.ok(readers.has('htmlparser2') && readers.has('yauzl'));
  assert.ok(readsDocuments({ name: 'src/a.ts', text: "import { parseDocument } from 'htmlparser2';" }));
});

test('nothing calls the parsers but their processes', () => {
  const wrong = sources.filter((source) => !isParser(source) && callsParsers(source));
  assert.deepEqual(namesOf(wrong), [], 'Run a task of the pool instead.');

  const text = (target: string, type = '') => `import ${type}{ a } from '../content/parse/${target}';`;
  assert.ok(callsParsers({ name: 'src/a.ts', text: text('web/robots.ts') }));
  assert.ok(!callsParsers({ name: 'src/a.ts', text: text('html/page.ts', 'type ') }));
  assert.ok(!callsParsers({ name: 'src/a.ts', text: text('pool/pool.ts') }));
});

/** Node writes beyond its memory when it decodes an odd number of bytes of UTF-16 at an odd address. */
const decodesUtf16 = ({ text }: Source) => /\.toString\([^)]*'(?:utf-?16le|ucs-?2)'/i.test(text);

test('only one function decodes UTF-16 from buffers, in whole characters', () => {
  assert.deepEqual(namesOf(sources.filter(decodesUtf16)), ['src/content/parse/format/utf16.ts'], 'Call decodeUtf16.');

  assert.ok(decodesUtf16({ name: 'src/a.ts', text: "bytes.toString(isWide ? 'utf16le' : 'latin1', 0, 3)" }));
});

/** What may start processes in the foreground, each with the reason. */
const inForeground: Record<string, string> = {
  'src/content/git/repository.ts': 'git has a deadline of the wall clock, and mostly waits for the network',
};

/** Starts a process, but not in the background. */
const startsInForeground = ({ text }: Source) =>
  /(?<!startInBackground\(\(own\) =>\s*)(?<![.\w])(?:spawn|fork|exec|execFile)\(/.test(
    text.replaceAll(/^\s*(?:\*|\/).*$/gm, ''),
  );

test('processes that work on what tenants sent are started in the background', () => {
  const works = ({ name }: Source) => /^src\/(?:content|automations)\//.test(name);
  const wrong = sources.filter((source) => works(source) && startsInForeground(source));
  assert.deepEqual(
    namesOf(wrong),
    Object.keys(inForeground),
    'Start them with startInBackground of src/lib/background-process.ts.',
  );

  assert.ok(startsInForeground({ name: 'src/a.ts', text: "const child = spawn('git', ['log']);" }));
  assert.ok(!startsInForeground({ name: 'src/a.ts', text: 'startInBackground((own) =>\n  fork(file, [], own),\n);' }));
});
