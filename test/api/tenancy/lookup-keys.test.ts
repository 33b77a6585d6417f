import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const user = await server.provision.user(app);
const other = await server.provision.app();

type Named = { id: string; lookup_key?: string | null };

const kinds = {
  source: {
    path: '/api/v1/knowledge_sources',
    body: { type: 'knowledge/documents', user: user.id },
    none: null,
  },
  webhook: {
    path: '/api/v1/webhooks',
    body: { url: 'https://example.com/hook', events: ['file.created'] },
    none: undefined,
  },
} as const;

for (const [kind, { path, body, none }] of Object.entries(kinds))
  describe(`the lookup key of a ${kind}`, () => {
    const api = <T = Named>(method: string, at: string, more?: object, key = app.secretKey) =>
      server.api<T>(method, `${path}${at}`, { key, ...(more === undefined ? {} : { body: more }) });
    const create = (more: object) => api('POST', '', { ...body, ...more });

    test('is stored, found by the list, changed and removed', async () => {
      const made = await create({ lookup_key: 'handbook' });
      assert.equal(made.status, 201);
      assert.equal(made.body.lookup_key, 'handbook');
      await create({});
      const list = async (name: string) =>
        (await api<{ data: Named[]; total_entries: number }>('GET', `?lookup_key=${name}`)).body;
      assert.deepEqual(
        (await list('handbook')).data.map(({ id }) => id),
        [made.body.id],
      );
      assert.equal((await list('handbook')).total_entries, 1);
      assert.deepEqual((await list('handboo')).data, []);

      const kept = await api('PATCH', `/${made.body.id}`, {});
      assert.equal(kept.body.lookup_key, 'handbook');
      const changed = await api('PATCH', `/${made.body.id}`, { lookup_key: 'manual' });
      assert.equal(changed.body.lookup_key, 'manual');
      const removed = await api('PATCH', `/${made.body.id}`, { lookup_key: null });
      assert.equal(removed.body.lookup_key, none);
      assert.equal((await list('manual')).total_entries, 0);
    });

    test('is unique in the app, at creation and when it is changed', async () => {
      const first = await create({ lookup_key: 'taken' });
      assert.equal(first.status, 201);
      const second = await create({});
      for (const refused of [
        await api<ErrorBody>('POST', '', { ...body, lookup_key: 'taken' }),
        await api<ErrorBody>('PATCH', `/${second.body.id}`, { lookup_key: 'taken' }),
      ]) {
        assert.equal(refused.status, 422);
        assert.equal(refused.body.error.code, 'already_exists');
        assert.deepEqual(refused.body.error.fields, [{ field: 'lookup_key', message: 'is taken' }]);
      }
      const elsewhere = kind === 'source' ? { ...body, user: (await server.provision.user(other)).id } : body;
      const made = await api('POST', '', { ...elsewhere, lookup_key: 'taken' }, other.secretKey);
      assert.equal(made.status, 201, 'another app has its own keys');
      // The key is free again with the resource.
      assert.equal((await api('DELETE', `/${first.body.id}`)).status, 204);
      assert.equal((await create({ lookup_key: 'taken' })).status, 201);
    });

    test('is refused if it looks like an id, is empty or too long', async () => {
      const { body: made } = await create({});
      for (const wrong of [made.id, '', 'x'.repeat(201), 7]) {
        const refused = await api<ErrorBody>('POST', '', { ...body, lookup_key: wrong });
        assert.equal(refused.status, 422, String(wrong));
        assert.equal(refused.body.error.fields[0]?.field, 'lookup_key');
      }
    });
  });

test('a user sets no lookup key: it could take the one of a source that is hidden from the user', async () => {
  const body = { type: 'knowledge/documents', user: user.id };
  const made = await server.api('POST', kinds.source.path, { token: user.token, body });
  assert.equal(made.status, 201);
  for (const refused of [
    await server.api('POST', kinds.source.path, { token: user.token, body: { ...body, lookup_key: 'mine' } }),
    await server.api('PATCH', `${kinds.source.path}/${made.body.id}`, {
      token: user.token,
      body: { lookup_key: null },
    }),
  ])
    assert.equal(refused.status, 403);
});
