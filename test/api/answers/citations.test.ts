import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { SignedStatement } from '../../../src/answers/statement.ts';
import { findSigner } from '../../../src/ledger/statement.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const { member, loner, viewer } = world;
const app = knowledgeOf(server, { key: world.app.secretKey });
const as = (user: { token: string }) => knowledgeOf(server, { token: user.token });

const text =
  '# Rückgabe\n\nGoods may be returned within **thirty days** of purchase.\n\n<!-- page 2 -->\n\nÉclairs are excluded from returns, as are “open” boxes.\n';
const source = await app.createSource({ org: world.org.id });
const document = await app.push(source, text, { title: 'Rules' });

const verify = async (body: object, caller = app) => {
  const response = await caller.send<SignedStatement & ErrorBody>('POST', '/citations/verify', body);
  return { ...response, statement: response.body.statement };
};
const statusesOf = async (body: object, caller = app) =>
  (await verify(body, caller)).statement.quotes.map((q) => q.status);

test('a quote is returned with its document, its version, its exact bytes and its page', async () => {
  const { status, statement } = await verify({ quotes: ['Éclairs are excluded from returns, as are "open" boxes.'] });
  assert.equal(status, 200);
  const [quote] = statement.quotes;
  assert.deepEqual(
    [quote?.status, quote?.document, quote?.source, quote?.title],
    ['normalised', document, source, 'Rules'],
  );
  const shown = await app.send<{ content_hash: string }>('GET', `/knowledge_documents/${document}`);
  assert.equal(quote?.content_hash, shown.body.content_hash);
  const [place] = quote?.places ?? [];
  assert.equal(place?.start_page, 2);
  const bytes = Buffer.from(text).subarray(place?.start_byte, place?.end_byte).toString();
  assert.equal(bytes, 'Éclairs are excluded from returns, as are “open” boxes.');
  assert.equal(place?.text, bytes);
});

test('the quotes of a text from anywhere are found in named documents, in sources, and in everything visible', async () => {
  const answer =
    'The rules say “Goods may be returned within thirty days of purchase.” They add "returned within sixty days of purchase". Nothing else is known. Boxes count [1].';
  const quoted = ['normalised', 'altered'];
  for (const scope of [{}, { sources: [source] }, { documents: [document] }]) {
    const { statement } = await verify({ text: answer, ...scope });
    assert.deepEqual(
      statement.quotes.map(({ status }) => status),
      quoted,
    );
    const [first, second] = statement.quotes;
    assert.equal(answer.slice(first?.start, first?.end), first?.text);
    assert.ok(second?.difference?.some(({ type, text }) => type === 'only_in_quote' && text === 'sixty'));
    assert.ok(second?.difference?.some(({ type, text }) => type === 'only_in_source' && text === 'thirty'));
    const sentences = statement.sentences?.map(({ status }) => status);
    assert.deepEqual(sentences, ['quoted', 'uncited', 'uncited', 'documents' in scope ? 'cited' : 'uncited']);
  }
  assert.deepEqual(await statusesOf({ quotes: ['thirty days'] }), ['too_short']);
  assert.deepEqual(await statusesOf({ quotes: ['Waren können innerhalb von dreißig Tagen'] }), ['not_found']);
});

test('a quote of a document that the caller may not read is not found', async () => {
  const hidden = 'Secret lapwings nest behind the observatory.';
  const restricted = await app.push(source, hidden, {
    acl: { grants: [{ principal_type: 'user', principal: member.id }] },
  });
  const quotes = ['lapwings nest behind the observatory'];
  assert.deepEqual(await statusesOf({ quotes }, as(member)), ['exact']);
  assert.deepEqual(await statusesOf({ quotes, documents: [restricted] }, as(member)), ['exact']);
  for (const user of [viewer, loner, world.otherUser]) {
    assert.deepEqual(await statusesOf({ quotes }, as(user)), ['not_found']);
    const named = await verify({ quotes, documents: [restricted] }, as(user));
    assert.deepEqual([named.status, named.body.error.fields[0]?.field], [422, 'documents.0']);
  }
  const other = knowledgeOf(server, { key: (await server.provision.app()).secretKey });
  assert.deepEqual(await statusesOf({ quotes }, other), ['not_found']);
});

test('the statement is signed: a change of any member is noticed', async () => {
  const { body } = await verify({ text: 'It says "Goods may be returned within thirty days".' });
  assert.ok(findSigner('quarry:citations:1', body));
  const changed = structuredClone(body);
  const [quote] = changed.statement.quotes;
  assert.ok(quote);
  quote.text = 'Goods may be returned within forty days';
  assert.equal(findSigner('quarry:citations:1', changed), undefined);
  assert.equal(
    findSigner('quarry:citations:1', {
      ...body,
      statement: { ...body.statement, verified_at: '2020-01-01T00:00:00.000Z' },
    }),
    undefined,
  );
});

test('wrong input is 422 and names its member', async () => {
  for (const [body, field] of [
    [{}, 'text'],
    [{ text: 'a', quotes: ['b'] }, 'text'],
    [{ quotes: [] }, 'quotes'],
    [{ quotes: ['a b c'], documents: ['x'] }, 'documents'],
    [{ quotes: ['a b c'], documents: [document], sources: [source] }, 'documents'],
    [{ quotes: ['a b c'], sources: [source], agent: 'a' }, 'agent'],
    [{ quotes: ['a b c'], sources: ['cso_0000000000000000000000'] }, 'sources'],
    [{ text: '"one two three" '.repeat(51) }, 'text'],
    [{ text: 'a'.repeat(50_001) }, 'text'],
    [{ quotes: ['a b c'], other: 1 }, 'other'],
  ] as const) {
    const { status, body: error } = await verify(body);
    assert.equal(status, 422, JSON.stringify(body).slice(0, 200));
    assert.match(error.error.fields[0]?.field ?? '', new RegExp(`^${field}`));
  }
});
