import type { Request } from 'autocannon';
import type { Fixture } from './fixture.ts';

/** Requests of one kind, to the bare server or to Quarry. `against` names the bare loads that do the same. */
export type Load = { name: string; server: 'bare' | 'quarry'; against: string[]; status: number; requests: Request[] };

const requestCount = 2_000;
const batchSize = 10;
const pageSize = 50;
const json = { 'content-type': 'application/json' };

/** The loads that take one statement each, measured in turns. */
export function createLoads(fixture: Fixture, tags: ReadonlyMap<string, string>): Record<string, Load[]> {
  const { user, secretKey, keys } = fixture;
  const asUser = { ...json, authorization: `Bearer ${user.token}` };
  const asServer = { ...json, 'x-api-key': secretKey };
  const keyAt = (i: number) => keys[(i * 7_919) % keys.length] ?? '';
  const many = (make: (i: number) => Request): Request[] => Array.from({ length: requestCount }, (_, i) => make(i));
  const pair = (
    name: string,
    bare: (i: number) => Request,
    ours: Record<string, (i: number) => Request>,
    status = 200,
  ): Load[] => [
    { name: `bare ${name}`.trim(), server: 'bare', against: [], status: 200, requests: many(bare) },
    ...Object.entries(ours).map(
      ([as, make]): Load => ({
        ...{ name: `${as} ${name}`.trim(), server: 'quarry', against: [`bare ${name}`.trim()], status },
        requests: many(make),
      }),
    ),
  ];
  const put = (size: (i: number) => number, name: string) =>
    pair(
      name,
      (i) => ({
        method: 'PUT',
        path: `/kv/${keyAt(i)}`,
        headers: json,
        body: JSON.stringify({ value: 'v'.repeat(size(i)) }),
      }),
      {
        'as a user': (i) => ({
          ...{ method: 'PUT', path: `/api/v1/kv/${keyAt(i)}`, headers: asUser },
          body: JSON.stringify({ value: 'v'.repeat(size(i)) }),
        }),
        'as a server': (i) => ({
          ...{ method: 'PUT', path: `/api/v1/kv/${keyAt(i)}`, headers: asServer },
          body: JSON.stringify({ value: 'v'.repeat(size(i)), user: user.id }),
        }),
      },
    );
  const bareGet = (i: number): Request => ({ method: 'GET', path: `/kv/${keyAt(i)}` });
  const puts = (i: number) =>
    Array.from({ length: batchSize }, (_, n) => ({ key: keyAt(i * batchSize + n), value: `${i}` }));
  const prefix = (i: number) => `key-${(i % 90) + 10}`;
  return {
    GET: pair('', bareGet, {
      'as a user': (i) => ({ method: 'GET', path: `/api/v1/kv/${keyAt(i)}`, headers: asUser }),
      'as a server': (i) => ({ method: 'GET', path: `/api/v1/kv/${keyAt(i)}?user=${user.id}`, headers: asServer }),
    }),
    'GET, unchanged': pair(
      '',
      bareGet,
      {
        'as a user': (i) => ({
          ...{ method: 'GET', path: `/api/v1/kv/${keyAt(i)}` },
          headers: { ...asUser, 'if-none-match': tags.get(keyAt(i)) ?? '' },
        }),
      },
      304,
    ),
    PUT: [...put(() => 100, ''), ...put((i) => 80 + ((i * 31) % 41), 'other sizes')],
    increment: pair(
      '',
      (i) => ({ method: 'POST', path: '/increment', headers: json, body: JSON.stringify({ key: `count-${i % 500}` }) }),
      {
        'as a user': (i) => ({
          ...{ method: 'POST', path: '/api/v1/kv_increment', headers: asUser },
          body: JSON.stringify({ key: `count-${i % 500}` }),
        }),
      },
    ),
    'batch of 10 puts': pair(
      '',
      (i) => ({ method: 'POST', path: '/batch', headers: json, body: JSON.stringify({ entries: puts(i) }) }),
      {
        'as a user': (i) => ({
          ...{ method: 'POST', path: '/api/v1/kv_batch', headers: asUser },
          body: JSON.stringify({ operations: puts(i).map((entry) => ({ op: 'put', ...entry })) }),
        }),
      },
    ),
    'kv_entries, 50 by prefix': [
      {
        ...{ name: 'bare, two members', server: 'bare', against: [], status: 200 },
        requests: many((i) => ({ method: 'GET', path: `/entries?prefix=${prefix(i)}&limit=${pageSize}` })),
      },
      {
        ...{ name: 'bare, five members', server: 'bare', against: [], status: 200 },
        requests: many((i) => ({ method: 'GET', path: `/full_entries?prefix=${prefix(i)}&limit=${pageSize}` })),
      },
      {
        ...{ name: 'as a user', server: 'quarry', against: ['bare, two members', 'bare, five members'], status: 200 },
        requests: many((i) => ({
          ...{ method: 'GET', path: `/api/v1/kv_entries?prefix=${prefix(i)}&limit=${pageSize}`, headers: asUser },
        })),
      },
    ],
  };
}

/** The tags of the entries that `GET, unchanged` names. */
export async function readTags(url: string, { user, keys }: Fixture): Promise<Map<string, string>> {
  const tags = new Map<string, string>();
  for (let i = 0; i < requestCount; i++) {
    const key = keys[(i * 7_919) % keys.length] ?? '';
    if (tags.has(key)) continue;
    const response = await fetch(`${url}/api/v1/kv/${key}`, { headers: { authorization: `Bearer ${user.token}` } });
    await response.text();
    tags.set(key, response.headers.get('etag') ?? '');
  }
  return tags;
}
