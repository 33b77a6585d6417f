import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { strToU8, zipSync } from 'fflate';
import { outputText, type TestExtraction } from '../../support/extractions.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

type World = Awaited<ReturnType<TestServer['provision']['world']>>;
let server: TestServer;
let world: World;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
});
after(() => server.close());

type Part = { name: string; type: string; bytes: string | Uint8Array };

function mail(subject: string, parts: Part[]): string {
  const attached = parts.map(
    ({
      name,
      type,
      bytes,
    }) => `--mark\r\nContent-Type: ${type}; name="${name}"\r\nContent-Disposition: attachment; filename="${name}"\r
Content-Transfer-Encoding: base64\r\n\r\n${Buffer.from(bytes).toString('base64').replace(/.{76}/g, '$&\r\n')}\r\n`,
  );
  return `From: A. Pilot <pilot@example.org>\r\nSubject: ${subject}\r\nMIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=mark\r\n\r\n--mark\r\nContent-Type: text/plain\r\n\r\nThe papers of ${subject}.\r\n${attached.join('')}--mark--\r\n`;
}

async function extract(text: string, filename: string, destination = {}) {
  const { app } = world;
  const data = Buffer.from(text).toString('base64');
  const file = await server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename, content_type: 'message/rfc822', data },
  });
  const { status, body } = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: { file: file.body.id, destination_kind: 'storage', ...destination },
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

const archive = zipSync({ 'a.txt': strToU8('in an archive') });

test('each attachment of a mail is a separate output, and an unreadable one says why', async () => {
  const inner = mail('Inner', [{ name: 'deep.csv', type: 'text/csv', bytes: 'ship,tons\nAurora,1200\n' }]);
  const body = await extract(
    mail('Outer', [
      { name: 'notes.md', type: 'text/markdown', bytes: '# Tides\n\nHigh at noon.' },
      { name: 'notes.md', type: 'text/markdown', bytes: 'Low at six.' },
      { name: 'inner.eml', type: 'application/octet-stream', bytes: inner },
      { name: 'all.zip', type: 'application/zip', bytes: archive },
    ]),
    'Outer mail.eml',
    { destination_kind: 'config', destination_path: 'mails' },
  );
  assert.deepEqual(
    body.outputs.map(({ ordinal, state, file, metadata }) => [ordinal, state, file?.filename, metadata.attachment]),
    [
      [0, 'done', 'mails/Outer-mail.md', undefined],
      [1, 'done', 'mails/Outer-mail/notes.md', 'notes.md'],
      [2, 'done', 'mails/Outer-mail/notes-2.md', 'notes.md'],
      [3, 'done', 'mails/Outer-mail/inner.md', 'inner.eml'],
      [4, 'done', 'mails/Outer-mail/deep.md', 'inner.eml/deep.csv'],
      [5, 'failed', undefined, 'all.zip'],
    ],
  );
  assert.equal(body.outputs[5]?.error?.code, 'unsupported_content');
  assert.equal(body.output_count, 5);
  assert.match(await outputText(body.outputs[0]), /The papers of Outer[\s\S]*all\.zip/);
  assert.match(await outputText(body.outputs[1]), /High at noon/);
  assert.match(await outputText(body.outputs[4]), /\| Aurora \| 1200 \|/);
  const config = await server.api('GET', '/api/v1/config/mails/Outer-mail/deep.md', { key: world.app.secretKey });
  assert.equal(config.status, 200);
});

test('attachments are limited in depth, number and bytes, and the mail says what was left out', async () => {
  let nested = mail('Innermost', [{ name: 'end.txt', type: 'text/plain', bytes: 'The end.' }]);
  for (let level = 0; level < 4; level++)
    nested = mail(`Level ${level}`, [{ name: 'next.eml', type: 'application/octet-stream', bytes: nested }]);
  const deep = await extract(nested, 'deep.eml');
  assert.deepEqual(
    deep.outputs.map(({ state }) => state),
    ['done', 'done', 'done', 'done', 'failed'],
  );
  assert.match(deep.outputs[4]?.error?.message ?? '', /nested too deeply/);

  const part = (at: number) => ({ name: `${at}.txt`, type: 'text/plain', bytes: `Note ${at}.` });
  const many = await extract(
    mail(
      'Many',
      Array.from({ length: 60 }, (_unused, at) => part(at)),
    ),
    'many.eml',
  );
  assert.equal(many.outputs.length, 51);
  assert.equal(many.outputs[0]?.truncated, true);
  assert.deepEqual(many.outputs[0]?.metadata.truncated, ['10 attachments: there are too many, or they are too large']);
});

test('a knowledge document of a mail contains the text of its attachments', async () => {
  const { app, org } = world;
  const knowledge = knowledgeOf(server, { key: app.secretKey });
  const text = mail('Papers', [
    { name: 'tides.md', type: 'text/markdown', bytes: 'The spring tide is at the equinox.' },
  ]);
  const file = await server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: {
      org: org.id,
      filename: 'papers.eml',
      content_type: 'message/rfc822',
      data: Buffer.from(text).toString('base64'),
    },
  });
  const payload = { file_id: file.body.id };
  const source = await knowledge.createSource({ org: org.id, type: 'file/document', payload });
  const ended = await knowledge.ingest(source, { pull: true });
  assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
  const found = await knowledge.search(source, { query: 'equinox' });
  assert.match(JSON.stringify(found), /spring tide is at the equinox/);
});
