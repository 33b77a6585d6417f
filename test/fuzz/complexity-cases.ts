import type { RouteInfo } from '../../src/http/route/route.ts';
import { limits } from '../../src/lib/limits.ts';
import { type ApiDocument, memberPaths, withValue } from './api-document.ts';
import type { Resources } from './api-resources.ts';
import type { Case } from './api-sweep.ts';

/*
 * What the reference does not list, and bodies up to the limit of their route. `times` is 1 for the smaller request of a
 * pair and 4 for the larger one.
 */

/** Headers that some part of the server, a library or a proxy may read, whatever the operation documents. */
const headerNames = [
  ...['accept', 'accept-encoding', 'accept-language', 'authorization', 'cache-control', 'content-disposition'],
  ...['content-encoding', 'content-type', 'cookie', 'forwarded', 'host', 'if-match', 'if-modified-since'],
  ...['if-none-match', 'idempotency-key', 'last-event-id', 'origin', 'range', 'referer', 'te', 'traceparent'],
  ...['tracestate', 'upload-metadata', 'upload-offset', 'user-agent', 'x-api-key', 'x-app', 'x-filename'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-request-id', 'x-unknown'],
];

const units = [
  'a',
  ' ',
  '(',
  ',',
  '"',
  '\\',
  'a,',
  'a=',
  'a;',
  ';q=0,',
  '%25',
  '1-2,',
  'W/"a",',
  'a=b; ',
  '.',
  'é',
  '0',
];
const queries = ['a=1&', 'a[]=1&', 'a[b]', '%25', '&', '=', 'a=%2', '+', ';a', 'page=1&', '%F0%9F%90%9F'];
/** All headers of a request have 64 KiB. */
const characters = 4_000;

/** Each operation with headers and query strings that it does not document. */
export function* undocumentedCases(plain: readonly Case[], times: number): Generator<Case> {
  const fill = (unit: string) => unit.repeat((times * characters) / unit.length);
  for (const [place, each] of plain.entries()) {
    const change = (what: string, alter: (sent: ReturnType<Case['send']>) => ReturnType<Case['send']>): Case => ({
      ...{ ...each, name: `${each.method} ${each.template} ${what}`, isPlain: false },
      send: () => alter(each.send()),
    });
    // Every operation gets every header with one text, and another one than its neighbours.
    for (const [index, name] of headerNames.entries()) {
      const unit = units[(place + index) % units.length] ?? '';
      const value = Buffer.from(fill(unit)).toString('latin1');
      yield change(`header ${name} of "${unit}"`, (sent) => ({
        ...sent,
        headers: { ...without(sent.headers, name), [name]: value },
      }));
    }
    for (const unit of queries)
      yield change(`query of "${unit}"`, ({ path, ...sent }) => ({
        ...sent,
        path: `${path}${path.includes('?') ? '&' : '?'}${fill(unit)}`,
      }));
  }
}

/** A header is sent once, whatever the case of its name. */
function without(headers: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([each]) => each.toLowerCase() !== name));
}

/** Each operation with JSON of many members, many items and long numbers, up to the limits of its route. */
export function* limitCases(
  document: ApiDocument,
  routes: readonly RouteInfo[],
  plain: readonly Case[],
  times: number,
): Generator<Case> {
  for (const each of plain) {
    const content = each.operation.requestBody?.content['application/json'];
    const route = routes.find(({ operationId }) => operationId === each.operation.operationId);
    if (content === undefined || route === undefined) continue;
    const { bytesMax, valuesMax } = route.budget;
    const room = { bytes: Math.min(bytesMax, limits.jsonShortBytesMax) - 4_000, values: valuesMax - 500 };
    const send = (what: string, at: (string | number)[], build: () => unknown): Case => ({
      ...{ ...each, name: `${each.method} ${each.template} ${what}`, isPlain: false },
      send() {
        const sent = each.send();
        const body = JSON.stringify(withValue(JSON.parse(sent.body ?? '{}'), at, build()));
        return { ...sent, body };
      },
    });
    for (const [what, build] of Object.entries(shapesOf(room, times))) {
      yield send(what, [], build);
      for (const path of memberPaths(document, content.schema, 1))
        if (path.length > 0) yield send(`${path.join('.')} = ${what}`, path, build);
    }
  }
}

/** Values that fill a quarter of this room, or all of it. */
function shapesOf(room: { bytes: number; values: number }, times: number): Record<string, () => unknown> {
  const many = (bytesEach: number, valuesMax: number) =>
    Math.floor((Math.min(room.values, valuesMax, room.bytes / bytesEach) * times) / 4);
  const repeat = <T>(count: number, item: (index: number) => T) =>
    Array.from({ length: count }, (_, index) => item(index));
  const members = limits.jsonMembersMax - 500;
  const object = (count: number, key: (index: number) => string) =>
    Object.fromEntries(repeat(count, (index) => [key(index), 1]));
  const texts = (unit: string) =>
    repeat(Math.ceil((room.bytes * times) / 4 / 60_000), () =>
      unit.repeat(10_000).slice(0, 40_000 / Buffer.byteLength(unit)),
    );
  return {
    'short members': () => object(many(12, members), (index) => `k${index}`),
    'long members': () => object(many(80, members), (index) => `k${index}`.padEnd(70, '/')),
    numbers: () => repeat(many(20, room.values), (index) => (index + 0.5) / 7.3),
    objects: () => repeat(many(12, members), () => ({ a: 1 })),
    'empty lists': () => repeat(many(3, room.values), () => []),
    escapes: () => texts('\u0001'),
    'two bytes': () => texts('é\n'),
  };
}

/** Bodies of other types, and the texts of resumable uploads, which are read apart from the schemas. */
export function* rawCases(resources: Resources, plain: readonly Case[], times: number): Generator<Case> {
  const find = (id: string) => plain.find(({ operation }) => operation.operationId === id);
  const inbound = find('postInbound');
  const bytes = 1_000_000;
  const texts = [
    'a',
    '{"a":',
    '[',
    '"a":1,',
    '<a>',
    '<a b="',
    '&amp;',
    'a,',
    '\n',
    '# ',
    '| a ',
    '%PDF-',
    '--b\r\n',
    '=?utf-8?b?',
  ];
  for (const type of [
    'text/plain',
    'application/json',
    'application/xml',
    'text/html',
    'text/csv',
    'message/rfc822',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
  ])
    for (const unit of inbound === undefined ? [] : texts)
      yield {
        ...({ ...inbound, name: `POST inbound ${type} of "${unit.trim()}"`, isPlain: false } as Case),
        send: () => ({
          path: `/api/v1/inbound/${String(resources.known.token)}`,
          headers: { 'content-type': type },
          body: unit.repeat((times * bytes) / 4 / unit.length),
        }),
      };
  const upload = find('createUpload');
  if (upload === undefined) throw new Error('No operation creates resumable uploads.');
  const encoded = (text: string) => Buffer.from(text).toString('base64');
  const keys = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1])));
  const metadata: Record<string, string> = {
    'many names': Array.from({ length: times * 400 }, (_, index) => `n${index} YQ==`).join(','),
    'one name again': 'filename YQ==,'.repeat(times * 300),
    'long filename': `filename ${encoded('a.'.repeat(times * 1_500))}`,
    'long type': `filename YQ==,content_type ${encoded('a/b;a="'.repeat(times * 400))}`,
    members: `filename YQ==,provider_metadata ${encoded(keys(times * 250))}`,
    levels: `filename YQ==,provider_metadata ${encoded('{"a":'.repeat(times * 600))}`,
    spaces: ' '.repeat(times * 4_000),
  };
  for (const [what, value] of Object.entries(metadata))
    yield {
      ...{ ...upload, name: `POST uploads, metadata of ${what}`, isPlain: false },
      send() {
        const sent = upload.send();
        return { ...sent, headers: { ...without(sent.headers, 'upload-metadata'), 'upload-metadata': value } };
      },
    };
}
