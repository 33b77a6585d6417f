import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { flushBundles, lockIndex, mergeSegments } from '../../../src/knowledge/index/store.ts';
import fc from '../../support/fast-check.ts';
import type { Json } from '../../support/knowledge.ts';
import { modelRuns } from '../../support/rounds.ts';
import { startTestServer } from '../../support/server.ts';
import {
  assertHidden,
  createSide,
  keyOf,
  normalise,
  ownerOf,
  readEverything,
  type Side,
  searchesFor,
} from '../../support/twin-sources.ts';

/*
 * Two apps have the same history, except that one also has documents that its reader cannot see. Every response to the
 * reader must be the same, bit for bit, except for ids and times.
 */

const server = await startTestServer();
after(() => server.close());
const [withHidden, without] = [await createSide(server), await createSide(server)];
const sides = [withHidden, without];
after(() => Promise.all(sides.map(({ mcp }) => mcp.close())));
const run = { signal: new AbortController().signal, waitOutside: <T>(wait: () => Promise<T>) => wait() } as never;

const vocabulary = ['alpha', 'alphabet', 'alpine', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'heron', 'marsh'];
const german = 'Der Reiher steht im Schilf und wartet auf Fische, während die anderen Vögel schlafen.';
const many = Array.from({ length: 260 }, (_word, i) => `pre${String(i).padStart(3, '0')}`).join(' ');

type Who = 'everyone' | 'reader' | 'insider';
type Operation =
  | { do: 'add' | 'batch'; who: Who; words: number[] }
  | { do: 'replace' | 'delete'; who: Who; pick: number; words: number[] }
  | { do: 'restrict' | 'flush' | 'compact'; pick: number };

/** A text of these words; some numbers stand for a text in another language or with many words of one prefix. */
function textOf(words: readonly number[]): string {
  if (words[0] === 0) return german;
  if (words[0] === 1) return `${many} ${vocabulary[words.length]}`;
  const body = words.map((word) => vocabulary[word % vocabulary.length]);
  return `# ${body[0]}\n\n${body.join(' ')}.\n\n## ${body.at(-1)}\n\n${body.reverse().join(' ')}.`;
}

/** One source on each side, and what their histories have added. */
class Twins {
  readonly sources: string[];
  /** Documents that the reader sees, on both sides, and hidden ones. */
  readonly seen: { who: Who; ids: string[] }[] = [];
  readonly hidden: string[] = [];

  constructor(sources: string[]) {
    this.sources = sources;
  }

  static async create(): Promise<Twins> {
    const sources: string[] = [];
    for (const side of sides) sources.push(await ownerOf(server, side).createSource({ agent: side.agent.id }));
    return new Twins(sources);
  }

  aclFor(side: Side, who: Who): Json {
    if (who === 'everyone') return {};
    const { reader, insider } = side;
    return { acl: { grants: [{ principal_type: 'user', principal: who === 'reader' ? reader.id : insider.id }] } };
  }

  /** The sides that a document with these readers is on. */
  on(who: Who): [Side, string][] {
    const all = sides.map((side, i): [Side, string] => [side, this.sources[i] ?? '']);
    return who === 'insider' ? all.slice(0, 1) : all;
  }

  async add(who: Who, words: number[], count: number): Promise<void> {
    const content = (i: number) => ({ content: { data: textOf(words.map((word) => word + i)) } });
    const item = (i: number) => ({
      ...content(i),
      title: `Text ${words[0]}`,
      metadata: { shelf: (words[0] ?? 0) % 3, kind: who },
    });
    const added: string[][] = Array.from({ length: count }, () => []);
    for (const [side, source] of this.on(who)) {
      const body =
        count === 1
          ? { ...item(0), ...this.aclFor(side, who) }
          : { items: added.map((_ids, i) => item(i)), ...this.aclFor(side, who) };
      const done = await ownerOf(server, side).ingest(source, body, count === 1 ? 'ingest' : 'ingest/batch');
      assert.equal(done.status, 'succeeded');
      const found = count === 1 ? [done.metadata] : (done.metadata.items ?? []);
      for (const [i, { document }] of found.entries()) added[i]?.push(String(document));
    }
    for (const documents of added)
      if (who === 'insider') this.hidden.push(...documents);
      else this.seen.push({ who, ids: documents });
  }

  async change(operation: Extract<Operation, { do: 'replace' | 'delete' }>): Promise<void> {
    const { who, pick } = operation;
    const list = who === 'insider' ? this.hidden.map((id) => ({ ids: [id] })) : this.seen;
    if (list.length === 0) return;
    const place = pick % list.length;
    for (const [i, [side]] of this.on(who).entries()) {
      const path = `/knowledge_documents/${list[place]?.ids[i]}`;
      const owner = ownerOf(server, side);
      if (operation.do === 'delete') {
        assert.equal((await owner.send('DELETE', path)).status, 204);
        continue;
      }
      const started = await owner.send<{ id: string }>('PATCH', path, { content: { data: textOf(operation.words) } });
      await owner.waitForIngestion(started.body.id);
    }
    if (operation.do === 'replace') return;
    if (who === 'insider') this.hidden.splice(place, 1);
    else this.seen.splice(place, 1);
  }

  /** A document that everyone saw becomes hidden. The other side never had it. */
  async restrict(pick: number): Promise<void> {
    const owner = ownerOf(server, withHidden);
    const id = await owner.push(this.sources[0] ?? '', pick % 3 === 0 ? german : textOf([pick, pick + 1, 5]));
    const { acl } = this.aclFor(withHidden, 'insider') as { acl: Json };
    assert.equal((await owner.send('PATCH', `/knowledge_documents/${id}/acl`, acl)).status, 200);
    this.hidden.push(id);
  }

  async flush(): Promise<void> {
    for (const [i, side] of sides.entries()) {
      const key = keyOf(side, this.sources[i] ?? '');
      await server.db.begin(async (tx) => {
        const state = await lockIndex(tx, key);
        if (state) await flushBundles(tx, key, state);
      });
      while (await server.db.begin((tx) => mergeSegments(tx, key)));
    }
  }

  async compact(): Promise<void> {
    for (const [i, side] of sides.entries())
      await server.server.work.tasks.compact_index?.(keyOf(side, this.sources[i] ?? ''), run);
  }

  async apply(operation: Operation): Promise<void> {
    switch (operation.do) {
      case 'add':
        return this.add(operation.who, operation.words, 1);
      case 'batch':
        return this.add(operation.who, operation.words, 34);
      case 'replace':
      case 'delete':
        return this.change(operation);
      case 'restrict':
        return this.restrict(operation.pick);
      case 'flush':
        return this.flush();
      case 'compact':
        return this.compact();
    }
  }

  async compare(): Promise<number> {
    const searches = searchesFor(['alpha', 'beta', 'heron', 'Reiher', 'zeta']);
    const [one = [], other = []] = [
      await readEverything(server, withHidden, this.sources[0] ?? '', searches),
      await readEverything(server, without, this.sources[1] ?? '', searches),
    ];
    for (const [i, line] of one.entries()) assert.equal(line, other[i]);
    assert.equal(one.length, other.length);
    for (const id of this.hidden) await assertHidden(server, withHidden, id);
    return one.length;
  }
}

const words = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 2, maxLength: 8 });
const who = fc.constantFrom<Who>('everyone', 'reader', 'insider', 'insider');
const pick = fc.nat({ max: 100 });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('add' as const), who, words }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('batch' as const), who, words }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('replace' as const), who, pick, words }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), who, pick, words }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restrict' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('flush' as const, 'compact' as const), pick }) },
);

const { numRuns, seed } = modelRuns(3);

test('responses with hidden documents equal those of a source that never had them', {
  timeout: 1_800_000,
}, async (context) => {
  let [responses, hidden] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 4, maxLength: 12 }), async (operations) => {
      const twins = await Twins.create();
      for (const each of operations) await twins.apply(each);
      responses += await twins.compare();
      hidden += twins.hidden.length;
    }),
    { numRuns, seed, endOnFailure: true },
  );
  context.diagnostic(`seed ${seed}: ${responses} responses compared, ${hidden} hidden documents`);
  assert.ok(hidden > 0);
});

test('a document that is ingested again does not reveal a hidden one', async () => {
  const twins = await Twins.create();
  await twins.add('insider', [3, 4, 5], 1);
  const texts: string[] = [];
  for (const [side, source] of twins.on('everyone')) {
    const body = { content: { data: textOf([3, 4, 5]) }, dedupe: true, on_active: 'error' };
    const path = `/api/v1/knowledge_sources/${source}/ingest`;
    const { text } = await server.api('POST', path, { token: side.reader.token, body });
    texts.push(normalise(side, text));
  }
  assert.equal(texts[0], texts[1]);
  await twins.compare();
});

test('what a source has learned says nothing about hidden documents', { timeout: 1_800_000 }, async () => {
  const twins = await Twins.create();
  const text = (i: number) => {
    const half = i % 2 === 0 ? ['rose', 'tulip', 'spade', 'soil'] : ['road', 'lorry', 'bridge', 'asphalt'];
    return `# Number${i}\n\nThe ${half[i % 4]} needs ${half[(i >> 2) % 4]} and ${half[(i >> 4) % 4]}.${' And so on.'.repeat(40)}\n\n`;
  };
  const documentOf = (from: number) => Array.from({ length: 10 }, (_part, i) => text(from + i)).join('');
  for (const [side, source] of twins.on('everyone')) {
    const owner = ownerOf(server, side);
    const secret = { content: { data: `${documentOf(7)} The spade repairs every bridge.` } };
    const { acl } = twins.aclFor(side, 'insider') as { acl: Json };
    if (side === withHidden) await owner.ingest(source, { items: [secret, secret], acl }, 'ingest/batch');
    const items = Array.from({ length: 28 }, (_item, i) => ({ content: { data: documentOf(i * 10) } }));
    await owner.ingest(source, { items }, 'ingest/batch');
    if (side === withHidden) await owner.ingest(source, { items: [secret], acl }, 'ingest/batch');
    for (let trained = false; !trained; ) {
      await server.server.work.tasks.learn_sources?.({ appId: side.app.app.uuid }, run);
      const rows = await server.db`
        select 1 from knowledge_models where source_id = ${keyOf(side, source).sourceId} and dimensions > 0`;
      trained = rows.length > 0;
      if (!trained) await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  const words = ['tulip soil spade rose road bridge', 'lorry asphalt', 'spade bridge', 'soil'];
  for (const side of sides) side.names.clear();
  const read = sides.map((side, i) =>
    readEverything(
      server,
      side,
      twins.sources[i] ?? '',
      searchesFor(words).filter(({ mode }) => mode === 'hybrid'),
    ),
  );
  const [one = [], other = []] = await Promise.all(read);
  assert.ok(one.some((line) => line.includes('"learned_weight"')));
  for (const [i, line] of one.entries()) assert.equal(line, other[i]);
});
