import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encodePicture, pictureKind } from '../../../src/content/picture/codecs.ts';
import { deleteUnusedPictures, insertPicture } from '../../../src/files/picture-store.ts';
import { findFile } from '../../../src/files/store.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { pdf, pdfOfPages } from '../../support/documents.ts';
import type { FileBody } from '../../support/files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { halves } from '../../support/pictures.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

type WithPicture = FileBody & { picture_url?: string };

const clock = new ManualClock();
const server = await startTestServer({ clock });
after(() => server.close());
const { api, provision, db, services } = server;
const app = await provision.app();
const key = { key: app.secretKey };
const png = Buffer.from(await encodePicture(halves(300, 100), 'png'));

async function store(bytes: Uint8Array, contentType: string, who: { key: string } = key): Promise<string> {
  const body = { filename: 'a', content_type: contentType, data: Buffer.from(bytes).toString('base64') };
  return (await api<FileBody>('POST', '/api/v1/files', { ...who, body })).body.id;
}
const urlOf = async (id: string, query = 'width=128') =>
  (await api<WithPicture>('GET', `/api/v1/files/${id}?${query}`, key)).body.picture_url;
const changed = (url: string, members: Record<string, string>) => {
  const other = new URL(url);
  for (const [name, value] of Object.entries(members)) other.searchParams.set(name, value);
  return other;
};
const codeOf = async (response: Response) => ((await response.json()) as ErrorBody).error.code;
const cached = async (id: string) => {
  const rows = await db<{ width: number }[]>`
    select p.width from pictures p join files f on f.app_id = p.app_id and f.checksum = p.checksum
    where f.id = ${parseId('file', id) ?? ''} order by p.width`;
  return rows.map(({ width }) => width);
};

test('a file has a URL of a small picture on request, and a list has one for each file', async () => {
  const id = await store(png, 'image/png');
  for (const format of ['webp', 'jpeg', 'png'] as const) {
    const response = await fetch((await urlOf(id, `width=128&format=${format}`)) ?? '');
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, `image/${format}`]);
    assert.match(response.headers.get('content-security-policy') ?? '', /sandbox/);
    assert.equal(pictureKind(new Uint8Array(await response.arrayBuffer())), format);
  }
  const { body: plain } = await api<WithPicture>('GET', `/api/v1/files/${id}`, key);
  assert.equal(plain.picture_url, undefined);
  const document = await store(pdf(), 'application/pdf');
  const { body: list } = await api<{ data: WithPicture[] }>('GET', '/api/v1/files?width=64', key);
  assert.deepEqual(
    list.data.map((file) => [file.id, file.picture_url !== undefined]),
    [
      [document, true],
      [id, true],
    ],
  );
  assert.equal((await fetch(list.data[0]?.picture_url ?? '')).headers.get('content-type'), 'image/webp');
  for (const type of ['image/svg+xml', 'text/plain', 'image/tiff'])
    assert.equal(await urlOf(await store(Buffer.from('<svg/>'), type)), undefined);
});

test('the size is signed: a URL opens one picture of one file, until it expires', async () => {
  const [id, other] = [await store(png, 'image/png'), await store(png, 'image/png')];
  const url = (await urlOf(id)) ?? '';
  assert.equal((await fetch(url)).status, 200);
  const { body: file } = await api<FileBody>('GET', `/api/v1/files/${id}`, key);
  const signature = new URL(file.url).searchParams.get('signature') ?? '';
  for (const wrong of [
    changed(url, { width: '256' }),
    changed(url, { width: '2' }),
    changed(url, { format: 'png' }),
    changed(url, { format: 'svg' }),
    changed(url, { expires: '99999999999' }),
    changed(url, { signature }),
    new URL(url.replace(id, other)),
    new URL(url.replace('/picture', '/content')),
  ])
    assert.equal((await fetch(wrong)).status, 403, wrong.search);
  for (const query of ['width=100', 'width=big', 'format=png', 'width=64&format=gif'])
    assert.equal((await api('GET', `/api/v1/files/${id}?${query}`, key)).status, 422, query);
  clock.advance(3_601_000);
  assert.equal((await fetch(url)).status, 403);
  const again = (await urlOf(id)) ?? '';
  await api('DELETE', `/api/v1/files/${id}`, key);
  assert.equal((await fetch(again)).status, 404);
});

test('any page of a PDF has a picture, whose number is signed', async () => {
  const id = await store(pdfOfPages([['Ships'], ['Ships', 'come in']]), 'application/pdf');
  const sizes = [];
  for (const page of ['', '&page=1', '&page=2']) {
    const response = await fetch((await urlOf(id, `width=256&format=png${page}`)) ?? '');
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'image/png']);
    sizes.push((await response.arrayBuffer()).byteLength);
  }
  assert.equal(sizes[0], sizes[1]);
  assert.ok((sizes[2] ?? 0) > (sizes[1] ?? 0), 'more is written on the second page');
  const second = (await urlOf(id, 'width=256&page=2')) ?? '';
  for (const page of ['1', '3', '02', 'two']) assert.equal((await fetch(changed(second, { page }))).status, 403, page);
  const etag = (await fetch(second)).headers.get('etag') ?? '';
  assert.equal((await fetch(second, { headers: { 'if-none-match': etag } })).status, 304);
  // Only the first page is cached.
  assert.deepEqual(await cached(id), [256]);
  for (const file of [id, await store(png, 'image/png')]) {
    const missing = await fetch((await urlOf(file, 'width=256&page=3')) ?? '');
    assert.deepEqual([missing.status, await codeOf(missing)], [422, 'extraction_failed']);
  }
  for (const query of ['page=2', 'width=64&page=0', 'width=64&page=10001', 'width=64&page=1.5'])
    assert.equal((await api('GET', `/api/v1/files/${id}?${query}`, key)).status, 422, query);
  // In a list, `page` is the page of the list.
  const { body: list } = await api<{ data: WithPicture[] }>('GET', '/api/v1/files?width=64&page=2', key);
  assert.deepEqual(list.data, []);
});

test('a picture is created once: later requests read the cache, and a client that has it gets 304', async () => {
  const id = await store(png.subarray(), 'image/png');
  const url = (await urlOf(id, 'width=512&format=jpeg')) ?? '';
  const [first, second] = await Promise.all([fetch(url), fetch(url)]);
  const bytes = Buffer.from(await first.arrayBuffer());
  assert.ok(bytes.equals(Buffer.from(await second.arrayBuffer())));
  const make = services.parser.picture;
  services.parser.picture = () => assert.fail('The picture is made again.');
  try {
    const later = await fetch(url);
    assert.ok(bytes.equals(Buffer.from(await later.arrayBuffer())));
    const etag = later.headers.get('etag') ?? '';
    assert.match(etag, /^"[0-9a-f]{64}-512-jpeg"$/);
    assert.equal((await fetch(url, { headers: { 'if-none-match': etag } })).status, 304);
    const head = await fetch(url, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(bytes.length)]);
  } finally {
    services.parser.picture = make;
  }
});

test('the cache of an app is bounded, evicts unused pictures, and loses them with their file', async () => {
  const id = await store(await encodePicture(halves(90, 90), 'png'), 'image/png');
  const row = await findFile(db, app.app.uuid, parseId('file', id) ?? '');
  assert.ok(row);
  await db`delete from pictures`;
  for (const width of [64, 128, 256] as const) {
    await insertPicture(db, row, { width, format: 'png' }, Buffer.alloc(400), 1_000);
    await db`update pictures set used_at = used_at - interval '1 minute'`;
  }
  assert.deepEqual(await cached(id), [128, 256]);
  await db`update pictures set used_at = now() - interval '31 days' where width = 128`;
  await deleteUnusedPictures(db, 30);
  assert.deepEqual(await cached(id), [256]);
  await api('DELETE', `/api/v1/files/${id}`, key);
  assert.equal((await db`select 1 from pictures`).length, 0);
});

test('a file that is damaged, too large or no picture is a clear 4xx', async () => {
  const huge = Buffer.from(png);
  huge.writeUInt32BE(50_000, 16);
  huge.writeUInt32BE(50_000, 20);
  for (const [bytes, code] of [
    [png.subarray(0, 60), 'extraction_failed'],
    [huge, 'extraction_failed'],
    [Buffer.from('text'), 'unsupported_content'],
    [Buffer.alloc(33 * 1024 * 1024, png), 'file_too_large'],
  ] as const) {
    const response = await fetch((await urlOf(await store(bytes, 'image/png'))) ?? '');
    assert.deepEqual([response.status, await codeOf(response)], [422, code]);
    assert.equal(response.headers.get('cache-control'), 'no-store');
  }
});
