import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { strToU8, zipSync } from 'fflate';
import { ParseError, type ParseFailure } from '../../../src/content/parse/types.ts';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import type { FileBody } from '../../support/files.ts';
import { type ApiOptions, type ApiResponse, type ErrorBody, startTestServer } from '../../support/server.ts';
import { zipBomb } from '../../support/zip-bomb.ts';

/** Document extractions: the rules of the request, where outputs go, and every way in which a document can fail. */

const server = await startTestServer();
// Only this file's server leaves anything here; other processes of the run use the directory of the machine.
const { TMPDIR: machineTemporary } = process.env;
const temporary = mkdtempSync(join(tmpdir(), 'quarry-extractions-'));
process.env.TMPDIR = temporary;
after(async () => {
  await server.close();
  if (machineTemporary === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = machineTemporary;
  rmSync(temporary, { recursive: true });
});
const { api, provision, db, dataDir, services } = server;
const { app, org, otherOrg, member, admin, viewer, loner, otherApp, stranger } = await provision.world();
const key = app.secretKey;
const agent = await provision.agent(app, { user: member, org });

type Output = { id: string; ordinal: number; state: string; title?: string; file: FileBody; created_at: string };
type Extraction = {
  id: string;
  kind: string;
  state: string;
  destination: { kind: string; path_prefix?: string };
  file?: string;
  agent?: string;
  org?: string;
  output_count: number;
  byte_count: number;
  outputs: Output[];
  progress: object;
};
type Config = {
  id: string;
  virtual_path: string;
  content_type: string;
  content?: string;
  version: number;
  current_version: { id: string; version_number: number; content_hash: string; created_at: string };
  file: string;
  org?: string;
  agent?: string;
};

async function upload(
  data: string | Uint8Array,
  filename = 'note.txt',
  contentType = 'text/plain',
  options: ApiOptions & { owner?: object } = { key },
): Promise<string> {
  const { owner, ...who } = options;
  const body = { filename, content_type: contentType, data: Buffer.from(data).toString('base64'), ...owner };
  const answer = await api<FileBody>('POST', '/api/v1/files', { ...who, body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id;
}

const extract = <T = Extraction>(body: object, who: ApiOptions = { key }) =>
  api<T>('POST', '/api/v1/extractions', { ...who, body });
const config = <T = Config>(path: string, who: ApiOptions = { key }) => api<T>('GET', `/api/v1/config/${path}`, who);
const contentOf = async ({ url }: FileBody) => (await fetch(url)).text();

test('the response has the finished document, and its output is a complete file', async () => {
  const file = await upload('# Title\n\nSome text.', 'My report (final).md', 'text/markdown');
  const { status, body } = await extract({ file, destination_kind: 'storage', destination_path: '/a/./b//../c/' });
  assert.equal(status, 201);
  assert.deepEqual([body.kind, body.state, body.file], ['document', 'done', file]);
  assert.deepEqual(body.destination, { kind: 'storage', path_prefix: 'a/b/c' });
  assert.deepEqual(body.progress, { discovered: 1, done: 1, failed: 0 });
  assert.ok(!('url' in body) && !('mode' in body) && !('max_pages' in body) && !('failure_reason' in body));
  const [output] = body.outputs;
  assert.ok(output);
  assert.deepEqual([output.ordinal, output.state, output.file.filename], [0, 'done', 'a/b/c/My-report--final-.md']);
  assert.equal(output.file.content_type, 'text/markdown');
  assert.deepEqual([body.output_count, body.byte_count], [1, output.file.size]);
  assert.match(await contentOf(output.file), /Some text\./);
  const again = await api<Extraction>('GET', `/api/v1/extractions/${body.id}`, { key });
  assert.deepEqual({ ...again.body, outputs: 1 }, { ...body, outputs: 1 });
});

test('storage without a path names the file by itself; config needs a path with a segment', async () => {
  const file = await upload('text');
  for (const path of [undefined, '', '/', './..', '//']) {
    const members = path === undefined ? {} : { destination_path: path };
    const stored = await extract({ file, destination_kind: 'storage', ...members });
    assert.equal(stored.body.outputs[0]?.file.filename, 'note.md');
    assert.ok(!('path_prefix' in stored.body.destination));
    const refused = await extract<ErrorBody>({ file, destination_kind: 'config', ...members });
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'destination_path']);
  }
});

test('exactly one of file and url with mode; members of the other are 422 on their name', async () => {
  const file = await upload('text');
  const storage = { destination_kind: 'storage' };
  const url = 'https://example.com/';
  for (const [field, body] of [
    ['file', storage],
    ['url', { ...storage, file, url, mode: 'link' }],
    ['mode', { ...storage, file, mode: 'link' }],
    ['mode', { ...storage, url }],
    ['mode', { ...storage, url, mode: 'page' }],
    ['mode', { ...storage, mode: 'document', file }],
    ['destination_kind', { file }],
    ['destination_kind', { file, destination_kind: 'disk' }],
    ['max_pages', { ...storage, url, mode: 'site', max_pages: 0 }],
    ['max_pages', { ...storage, url, mode: 'site', max_pages: 1.5 }],
    ['url', { ...storage, url: 'https://user:pass@example.com/', mode: 'link' }],
    ['url', { ...storage, url: 'http://127.0.0.1/', mode: 'link' }],
    ['url', { ...storage, url: 'http://2130706433/', mode: 'link' }],
    ['url', { ...storage, url: 'http://[::1]/', mode: 'link' }],
    ['url', { ...storage, url: 'http://[::ffff:127.0.0.1]/', mode: 'link' }],
    ['url', { ...storage, url: 'http://0x7f.1/', mode: 'link' }],
    ['url', { ...storage, url: 'http://localhost./', mode: 'link' }],
    ['url', { ...storage, url: 'http://a.localhost/', mode: 'link' }],
    ['url', { ...storage, url: 'ftp://example.com/', mode: 'link' }],
    ['url', { ...storage, url: 'file:///etc/passwd', mode: 'link' }],
    ['url', { ...storage, url: 'garbage', mode: 'link' }],
    ['file', { ...storage, file: 'garbage' }],
    ['file', { ...storage, file: member.id }],
    ['file', { ...storage, file: null }],
    ['agent', { ...storage, file, agent: 'garbage' }],
    ['agent', { ...storage, file, agent: formatId('agent', newUuid()) }],
    ['org', { ...storage, file, org: formatId('org', newUuid()) }],
    ['org', { ...storage, file, agent: agent.id, org: otherOrg.id }],
    ['state', { ...storage, file, state: 'done' }],
  ] as const) {
    const answer = await extract<ErrorBody>(body);
    assert.equal(answer.status, 422, `${JSON.stringify(body)} ${answer.text}`);
    assert.equal(answer.body.error.fields[0]?.field, field, `${JSON.stringify(body)} ${answer.text}`);
  }
});

test('a file that is missing and one that the caller may not see are the same 422 on file', async () => {
  const unknown = await extract<ErrorBody>({ file: formatId('file', newUuid()), destination_kind: 'storage' });
  const foreign = await upload('x', 'x.txt', 'text/plain', { key: otherApp.secretKey });
  const hidden = await upload('x', 'x.txt', 'text/plain', { token: admin.token });
  for (const answer of [
    await extract<ErrorBody>({ file: foreign, destination_kind: 'storage' }),
    await extract<ErrorBody>({ file: hidden, destination_kind: 'storage' }, { token: member.token }),
  ]) {
    assert.equal(answer.status, 422);
    assert.deepEqual(answer.body, unknown.body);
  }
});

test('a job belongs to its agent, else to the calling user, else to the org that a key names, else to the app', async () => {
  const mine = await upload('x', 'x.txt', 'text/plain', { token: member.token });
  const as = { token: member.token };
  const jobs = {
    agent: await extract({ file: mine, destination_kind: 'storage', agent: agent.id }, as),
    user: await extract({ file: mine, destination_kind: 'storage' }, as),
    org: await extract({ file: mine, destination_kind: 'storage', org: org.id }),
    app: await extract({ file: mine, destination_kind: 'storage' }),
  };
  const file = (job: ApiResponse<Extraction>) => job.body.outputs[0]?.file;
  assert.deepEqual([jobs.agent.body.agent, jobs.agent.body.org], [agent.id, org.id]);
  assert.deepEqual([file(jobs.agent)?.agent, file(jobs.agent)?.user], [agent.id, undefined]);
  assert.deepEqual([jobs.user.body.agent, jobs.user.body.org, file(jobs.user)?.user], [undefined, org.id, member.id]);
  assert.deepEqual([jobs.org.body.org, file(jobs.org)?.org, file(jobs.org)?.user], [org.id, org.id, undefined]);
  assert.deepEqual([jobs.app.body.org, file(jobs.app)?.org], [undefined, undefined]);
  const seen = async (job: ApiResponse<Extraction>, who: ApiOptions) =>
    (await api('GET', `/api/v1/extractions/${job.body.id}`, who)).status === 200;
  for (const [job, expected] of [
    ['agent', [true, false, false, false, false]],
    ['user', [true, false, false, false, false]],
    ['org', [true, true, true, false, false]],
    ['app', [false, false, false, false, false]],
  ] as const) {
    const answers: boolean[] = [];
    for (const user of [member, admin, viewer, loner, stranger])
      answers.push(await seen(jobs[job], { token: user.token }));
    assert.deepEqual(answers, expected, job);
    assert.equal(await seen(jobs[job], { key: otherApp.secretKey }), false);
  }
});

test('writing a config path again adds a version; old ones are read by number', async () => {
  const bodies: Extraction[] = [];
  for (const text of ['one', 'two', 'three']) {
    const file = await upload(text, 'guide.txt');
    const made = await extract({ file, destination_kind: 'config', destination_path: 'docs/v' });
    assert.equal(made.status, 201, made.text);
    bodies.push(made.body);
  }
  const latest = await config('docs/v/guide.md');
  assert.deepEqual([latest.body.version, latest.body.content?.trim()], [3, 'three']);
  assert.match(latest.body.id, /^cfg_/);
  assert.match(latest.body.current_version.id, /^cfv_/);
  assert.match(latest.body.current_version.content_hash, /^[0-9a-f]{64}$/);
  assert.equal(latest.body.current_version.version_number, 3);
  assert.equal(latest.body.content_type, 'text/markdown');
  assert.equal(latest.body.file, bodies[2]?.outputs[0]?.file.id);
  for (const [version, text] of [
    [1, 'one'],
    [2, 'two'],
    [3, 'three'],
  ] as const) {
    const old = await config(`docs/v/guide.md?version=${version}`);
    assert.deepEqual([old.status, old.body.version, old.body.content?.trim()], [200, version, text]);
    assert.equal(old.body.id, latest.body.id);
  }
  assert.equal((await config('docs/v/guide.md?version=4')).status, 404);
  for (const version of ['0', '-1', 'x', '2147483648'])
    assert.equal((await config(`docs/v/guide.md?version=${version}`)).status, 422);
  assert.equal((await config('docs/v/none.md')).status, 404);
  assert.equal((await config('docs%2Fv%2Fguide.md')).status, 200);
});

test('config paths of agent, org, user and app are separate, and lists take a literal prefix', async () => {
  const mine = await upload('x', 'same.txt', 'text/plain', { token: member.token });
  const destination = { destination_kind: 'config', destination_path: 'shelf_1' };
  const as = { token: member.token };
  const written = {
    user: await extract({ file: mine, ...destination }, as),
    agent: await extract({ file: mine, ...destination, agent: agent.id }, as),
    org: await extract({ file: mine, ...destination, org: org.id }),
    app: await extract({ file: mine, ...destination }),
  };
  for (const answer of Object.values(written)) assert.equal(answer.status, 201, answer.text);
  const path = 'shelf_1/same.md';
  const reads = {
    user: await config(path, as),
    agent: await config(`${path}?agent=${agent.id}`, as),
    org: await config(`${path}?org=${org.id}`, as),
    app: await config(path),
  };
  assert.equal(new Set(Object.values(reads).map(({ body }) => body.id)).size, 4);
  for (const { body } of Object.values(reads)) assert.equal(body.version, 1);
  assert.deepEqual([reads.agent.body.agent, reads.org.body.org, reads.app.body.org], [agent.id, org.id, undefined]);
  assert.equal((await config(path, { token: admin.token })).status, 404);
  assert.equal((await config(`${path}?agent=${agent.id}`, { token: admin.token })).status, 422);
  assert.equal((await config(`${path}?org=${org.id}`, { token: loner.token })).status, 422);
  assert.equal((await config(path, { key: otherApp.secretKey })).status, 404);
  const list = async (query: string, who: ApiOptions) =>
    (await api<{ data: Config[]; total_entries: number }>('GET', `/api/v1/config?${query}`, who)).body;
  assert.deepEqual(
    (await list('prefix=shelf_1/', as)).data.map((each) => each.virtual_path),
    [path],
  );
  assert.equal((await list('prefix=shelf%25', as)).total_entries, 0);
  assert.equal((await list('prefix=shelfX1', as)).total_entries, 0);
  assert.equal((await list(`prefix=shelf_1&agent=${agent.id}`, as)).data[0]?.id, reads.agent.body.id);
  assert.ok(!('content' in ((await list('prefix=shelf_1', as)).data[0] ?? {})));
});

test('exactly ten megabytes are read, one byte more is 422 file_too_large', async () => {
  const size = 10 * 1024 * 1024;
  const line = `${'word '.repeat(20)}\n`;
  const exact = Buffer.alloc(size, line);
  const accepted = await extract({ file: await upload(exact), destination_kind: 'storage' });
  assert.equal(accepted.status, 201, accepted.text.slice(0, 300));
  const file = await upload(Buffer.alloc(size + 1, line));
  await assertNothingLeft(422, 'file_too_large', file);
});

/** What a refused extraction could leave: rows, blobs and temporary files. */
async function listLeftovers(): Promise<object> {
  const counts: Record<string, unknown> = {};
  for (const table of ['extractions', 'extraction_outputs', 'files', 'configs', 'config_versions', 'doomed_blobs']) {
    const [row] = await db<{ count: number }[]>`select count(*)::integer as count from ${db(table)}`;
    counts[table] = row?.count;
  }
  const blobs = readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true });
  counts.blobs = blobs.filter((entry) => entry.isFile()).length;
  counts.temporary = readdirSync(tmpdir()).length;
  return counts;
}

async function assertNothingLeft(status: number, code: string | string[], file: string): Promise<void> {
  for (const destination of [
    { destination_kind: 'storage' },
    { destination_kind: 'config', destination_path: 'failed' },
  ]) {
    const before = await listLeftovers();
    const answer = await extract<ErrorBody>({ file, ...destination });
    assert.equal(answer.status, status, answer.text.slice(0, 300));
    assert.ok([code].flat().includes(answer.body.error.code), answer.text);
    assert.ok(answer.body.error.message.length > 10);
    assert.ok(!/\/work|\/src|node_modules|at .*:\d+/.test(answer.text), answer.text);
    assert.deepEqual(await listLeftovers(), before);
  }
  assert.equal(
    (await api<{ total_entries: number }>('GET', '/api/v1/config?prefix=failed', { key })).body.total_entries,
    0,
  );
}

const docxParts = {
  '[Content_Types].xml': strToU8(
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
  ),
  '_rels/.rels': strToU8(
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
  ),
};
const docx = (xml: string) => zipSync({ ...docxParts, 'word/document.xml': strToU8(xml) });
const docxType = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
const wordDocument = (inside: string) =>
  `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${inside}</w:body></w:document>`;
const good = docx(wordDocument('<w:p><w:r><w:t>Good.</w:t></w:r></w:p>'));

/** A PDF whose standard security handler wants a password that nobody knows. */
function encryptedPdf(): Buffer {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>',
    `<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'5a'.repeat(32)}> /U <${'a5'.repeat(32)}> >>`,
  ];
  let text = '%PDF-1.6\n';
  const offsets = objects.map((object, at) => {
    const offset = text.length;
    text += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const xref = text.length;
  text += `xref\n0 5\n0000000000 65535 f \n${offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')}`;
  text += `trailer\n<< /Size 5 /Root 1 0 R /Encrypt 4 0 R /ID [<00> <00>] >>\nstartxref\n${xref}\n%%EOF\n`;
  return Buffer.from(text, 'latin1');
}

const unreadable = ['unsupported_content', 'extraction_failed'];
const failures: Record<string, [Uint8Array | string, string, string]> = {
  'an empty file': ['', 'empty.pdf', 'application/pdf'],
  'an empty text': ['', 'empty.txt', 'text/plain'],
  'a truncated PDF': ['%PDF-1.7\n1 0 obj\n<< /Type /Cat', 'cut.pdf', 'application/pdf'],
  'a truncated DOCX': [good.subarray(0, good.length / 2), 'cut.docx', docxType],
  'an encrypted PDF': [encryptedPdf(), 'locked.pdf', 'application/pdf'],
  'a picture': [randomBytes(64), 'a.png', 'image/png'],
  'random bytes': [randomBytes(5_000), 'a.bin', 'application/octet-stream'],
  'random bytes that claim to be a PDF': [randomBytes(5_000), 'a.pdf', 'application/pdf'],
  'random bytes that claim to be a DOCX': [randomBytes(5_000), 'a.docx', docxType],
  'a program': [Buffer.concat([Buffer.from('\x7fELF\x02\x01\x01'), randomBytes(500)]), 'a.txt', 'text/plain'],
  'a ZIP of nothing known': [zipSync({ 'a.txt': strToU8('x') }), 'a.zip', 'application/zip'],
  'a DOCX without its document': [zipSync({ '[Content_Types].xml': strToU8('<Types/>') }), 'a.docx', docxType],
  'a DOCX of broken XML': [docx('<w:document><w:body><w:p>'), 'a.docx', docxType],
  'a DOCX nested 100,000 deep': [
    docx(wordDocument(`${'<w:tbl><w:tr><w:tc>'.repeat(100_000)}x`)),
    'deep.docx',
    docxType,
  ],
  'a zip bomb': [zipBomb(docxParts, 'word/document.xml', 400), 'bomb.docx', docxType],
};
for (const [name, [bytes, filename, contentType]] of Object.entries(failures))
  test(`${name} is a clear 422 that leaves nothing behind`, async () => {
    await assertNothingLeft(422, unreadable, await upload(bytes, filename, contentType));
  });

test('hostile HTML and XML end in text or a clear 422, never in a crash', async () => {
  for (const [name, text] of [
    ['a.html', `${'<div>'.repeat(200_000)}deep`],
    ['a.html', `<table>${'<tr><td>'.repeat(100_000)}`],
    ['a.xml', '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;</a>'],
    ['a.xml', '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'],
    ['a.csv', `${'"'.repeat(99_999)}`],
    ['a.rtf', `{\\rtf1 ${'{'.repeat(200_000)}`],
    ['a.md', `${'>'.repeat(50_000)} quote`],
    [
      'a.eml',
      `Content-Type: multipart/mixed; boundary=a\r\n\r\n${'--a\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n'.repeat(5_000)}`,
    ],
  ] as const) {
    const answer = await extract<Extraction & ErrorBody>({
      file: await upload(text, name),
      destination_kind: 'storage',
    });
    assert.ok([201, 422].includes(answer.status), `${name}: ${answer.text.slice(0, 300)}`);
    assert.ok(!/root:x:/.test(answer.text));
    const output = answer.body.outputs?.[0];
    if (output) assert.ok(!/root:x:/.test(await contentOf(output.file)));
  }
});

test('a crashing parser is 422, a hanging one 504, and the server keeps running', async () => {
  const file = await upload('text');
  const { parser } = services;
  const parse = parser.parse.bind(parser);
  for (const [reason, status] of [
    ['extraction_failed', 422],
    ['unsupported_content', 422],
    ['timeout', 504],
  ] as [ParseFailure, number][]) {
    parser.parse = () => Promise.reject(new ParseError(reason, 'The document could not be read here.'));
    await assertNothingLeft(status, reason, file);
  }
  parser.parse = () => Promise.reject(new Error('secret detail /src/x.ts'));
  const answer = await extract<ErrorBody>({ file, destination_kind: 'storage' });
  assert.deepEqual([answer.status, answer.body.error.code], [500, 'internal_error']);
  assert.ok(!answer.text.includes('secret'));
  parser.parse = parse;
  assert.equal((await extract({ file, destination_kind: 'storage' })).status, 201);
});

test('text with NUL and broken surrogates is read, without them', async () => {
  const file = await upload(Buffer.from('before\0after \ud83d end'), 'odd.txt');
  const made = await extract({ file, destination_kind: 'config', destination_path: 'odd' });
  assert.equal(made.status, 201, made.text);
  const read = await config('odd/odd.md');
  assert.match(read.body.content ?? '', /before.?after/);
  assert.ok(!read.body.content?.includes('\0'));
});

test('names that could be paths become one safe segment', async () => {
  for (const [filename, expected] of [
    ['../../etc/passwd.txt', 'p/passwd.md'],
    ['..', 'p/document.md'],
    ['.hidden', 'p/.hidden.md'],
    ['a\\b\\c.txt', 'p/c.md'],
    ['Über größe.txt', 'p/Über-größe.md'],
    ['a.b.c.txt', 'p/a.b.c.md'],
    ['\u202egnp.txt', 'p/-gnp.md'],
  ] as const) {
    const file = await upload('text', filename);
    const made = await extract({ file, destination_kind: 'storage', destination_path: 'p' });
    assert.equal(made.body.outputs?.[0]?.file.filename, expected, filename);
  }
});
