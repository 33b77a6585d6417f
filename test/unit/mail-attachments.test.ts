import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readInTurns } from '../../src/content/parse/mail/read-in-turns.ts';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { type ParsedDocument, ParseError } from '../../src/content/parse/types.ts';
import { createLogger } from '../../src/lib/log.ts';
import { outlookMessage } from '../support/documents.ts';

const workerFile = fileURLToPath(new URL('../support/fragile-parser.ts', import.meta.url));
const settings = { workers: 1, memoryMb: 256, log: createLogger('silent'), workerFile };
let pool: ParserPool;

before(() => {
  pool = new ParserPool({ ...settings, deadlineMs: 60_000 });
});

after(() => pool.close());

type File = [name: string, text: string];

function mail(subject: string, files: File[]): string {
  const parts = files.map(
    ([name, text]) =>
      `--mark\r\nContent-Type: application/octet-stream; name="${name}"\r\nContent-Disposition: attachment\r
Content-Transfer-Encoding: base64\r\n\r\n${Buffer.from(text).toString('base64').replace(/.{76}/g, '$&\r\n')}\r\n`,
  );
  return `From: pilot@example.org\r\nSubject: ${subject}\r\nMIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=mark\r\n\r\n--mark\r\nContent-Type: text/plain\r\n\r\nThe papers.\r\n${parts.join('')}--mark--\r\n`;
}

function outcomes({ parts = [] }: ParsedDocument): string[] {
  return parts.map(({ name, document, error }) => `${name}: ${document?.markdown.trim() ?? error?.message}`);
}

const crashed = 'The document made its parser crash: it is damaged or hostile.';

test('attachments that crash the parser fail alone: the mail and the others are read', async () => {
  const bytes = Buffer.from(
    mail('Papers', [
      ['first.txt', 'One.'],
      ['bad.txt', 'crash'],
      ['odd.txt', 'error'],
      ['last.txt', 'Four.'],
    ]),
  );
  const document = await pool.parse({ bytes }, { parts: 'apart' });
  assert.match(document.markdown, /^# Papers[\s\S]*The papers\./);
  assert.deepEqual(outcomes(document), [
    'first.txt: One.',
    `bad.txt: ${crashed}`,
    'odd.txt: The document is damaged or not what it claims to be.',
    'last.txt: Four.',
  ]);
  const joined = await pool.parse({ bytes });
  assert.match(joined.markdown, /## first\.txt\n\nOne\.\n\n<!-- bad\.txt was not read: .* -->[\s\S]*## last\.txt/);
});

test('so do those of a mail in a mail', async () => {
  const inner = mail('Inner', [
    ['a.txt', 'A.'],
    ['bad.txt', 'crash'],
    ['b.txt', 'B.'],
  ]);
  const outer = mail('Outer', [
    ['before.txt', 'Before.'],
    ['inner.eml', inner],
    ['after.txt', 'After.'],
  ]);
  const found = outcomes(await pool.parse({ bytes: Buffer.from(outer) }, { parts: 'apart' }));
  assert.match(found[1] ?? '', /^inner\.eml: # Inner/);
  assert.deepEqual(found.toSpliced(1, 1), [
    'before.txt: Before.',
    'inner.eml/a.txt: A.',
    `inner.eml/bad.txt: ${crashed}`,
    'inner.eml/b.txt: B.',
    'after.txt: After.',
  ]);
});

test('an attachment that hangs is ended in time for those after it', async () => {
  const bytes = Buffer.from(
    mail('Papers', [
      ['slow.txt', 'hang'],
      ['last.txt', 'Last.'],
    ]),
  );
  const impatient = new ParserPool({ ...settings, deadlineMs: 16_000 });
  const document = await impatient.parse({ bytes }, { parts: 'apart' }).finally(() => impatient.close());
  assert.deepEqual(outcomes(document), ['slow.txt: The document was not read within 8 seconds.', 'last.txt: Last.']);
});

test('a mail of nothing but crashes ends after a few processes, with every attachment named', async () => {
  let processes = 0;
  const names = Array.from({ length: 8 }, (_unused, at) => `${at}.txt`);
  const document = await readInTurns(8_000, async ({ resume, watch }) => {
    processes += 1;
    const at = (resume?.after[0] ?? -1) + 1;
    const left = { files: 50, bytes: 100, characters: 100 };
    if (at === 0)
      watch.onPart({ what: 'read', path: [], name: '', document: { kind: 'eml', markdown: '' }, attached: names }, []);
    watch.onPart({ what: 'begun', path: [at], name: `${at}.txt`, left }, []);
    throw new ParseError('extraction_failed', crashed);
  });
  assert.ok('parts' in document);
  assert.equal(processes, 5);
  const notRead = 'The attachment was not read, because 5 others made their parser crash or time out.';
  assert.deepEqual(
    outcomes(document),
    names.map((name, at) => `${name}: ${at < 5 ? crashed : notRead}`),
  );
});

test('a message in an Outlook message is a document of its own, and so are its files', async () => {
  const message = outlookMessage('Outer', 'The papers.', [
    { name: 'Reply', message: { text: 'Fair wind.', files: [{ name: 'crew.csv', bytes: 'ship,crew\nAurora,12\n' }] } },
    { name: 'note.txt', bytes: 'A note.' },
  ]);
  const { markdown, parts = [] } = await parseDocument({ bytes: message });
  assert.match(markdown, /Reply[\s\S]*note\.txt/);
  assert.deepEqual(
    parts.map(({ name, document }) => [name, document?.kind]),
    [
      ['Reply', 'msg'],
      ['Reply/crew.csv', 'csv'],
      ['note.txt', 'text'],
    ],
  );
  assert.match(parts[0]?.document?.markdown ?? '', /^# Reply[\s\S]*Fair wind\./);
});

test('messages in messages end at the depth of mails in mails', async () => {
  type Message = { text: string; files: { name: string; message: Message }[] };
  const nested = (level: number): Message => ({
    text: `Level ${level}.`,
    files: level === 0 ? [] : [{ name: `M${level}`, message: nested(level - 1) }],
  });
  const { text, files } = nested(5);
  const { parts = [] } = await parseDocument({ bytes: outlookMessage('Top', text, files) });
  assert.deepEqual(
    parts.map(({ name, error }) => [name, error?.message]),
    [
      ['M5', undefined],
      ['M5/M4', undefined],
      ['M5/M4/M3', undefined],
      ['M5/M4/M3/M2', 'The attachment is nested too deeply.'],
    ],
  );
});
