import { packWithCode } from '../../src/content/embed/codes.ts';
import { normalize } from '../../src/content/embed/embedder.ts';
import { embedLexically, lexicalEmbedder } from '../../src/content/embed/lexical.ts';
import type { Database, Transaction } from '../../src/db/database.ts';
import { insertVectors, lockIndex, type SourceKey } from '../../src/knowledge/index/store.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { drawText, seeded, words, wordsPerChunk } from './corpus.ts';

/** The number of chunks that a merge of segments puts into one segment. */
const chunksPerSegment = 65_536;
const chunksPerTransaction = 1_024;
const chunksPerDocument = 64;
const { model, dimensions } = lexicalEmbedder();

/**
 * Writes an index of generated texts as ingestion leaves it, one sorted segment at a time, without the steps in
 * between: chunking, bundles, merges. Returns the postings, and how long the texts with their vectors took.
 */
export async function fillSource(db: Database, key: SourceKey, chunks: number, withVectors: boolean) {
  const took = { textsMs: 0, postingsMs: 0 };
  const random = seeded(7);
  for (let done = 0; done < chunks; done += chunksPerSegment) {
    const count = Math.min(chunksPerSegment, chunks - done);
    const ranks = new Uint16Array(count * wordsPerChunk);
    drawText(ranks, chunks, chunksPerDocument, random);
    const start = performance.now();
    for (let from = 0; from < count; from += chunksPerTransaction) {
      const some = ranks.subarray(from * wordsPerChunk, (from + chunksPerTransaction) * wordsPerChunk);
      await addDocuments(db, key, some, withVectors);
    }
    const written = performance.now();
    await db.begin((tx) => addSegment(tx, key, ranks, done, count));
    took.textsMs += written - start;
    took.postingsMs += performance.now() - written;
  }
  return took;
}

async function addDocuments(db: Database, key: SourceKey, ranks: Uint16Array, withVectors: boolean): Promise<void> {
  const chunks = Array.from({ length: ranks.length / wordsPerChunk }, (_chunk, i) =>
    ranks.subarray(i * wordsPerChunk, (i + 1) * wordsPerChunk),
  );
  const passages = chunks.map((chunk) => `${Array.from(chunk, (rank) => words[rank]).join(' ')}\n`);
  const vectors = withVectors ? chunks.map(sumWordVectors) : [];
  const documents = Array.from({ length: Math.ceil(chunks.length / chunksPerDocument) }, (_document, i) => {
    const some = passages.slice(i * chunksPerDocument, (i + 1) * chunksPerDocument);
    return { id: newUuid(), first: i * chunksPerDocument, count: some.length, text: some.join('') };
  });
  const places = documents.flatMap(({ id, first, count }) => {
    let end = 0;
    return passages.slice(first, first + count).map((passage, i) => {
      end += passage.length;
      return { document: id, startByte: end - passage.length, endByte: end, line: i + 1 };
    });
  });
  await db.begin(async (tx) => {
    const state = await lockIndex(tx, key);
    if (!state) throw new Error('The source has an index.');
    const { nextOrdinal: next } = state;
    const rows = {
      ids: documents.map(({ id }) => id),
      texts: documents.map(({ text }) => `\\x${Buffer.from(text).toString('hex')}`),
    };
    await Promise.all([
      tx`
        insert into knowledge_documents (app_id, id, source_id, bytes_hash, content_hash, total_lines, total_size,
          first_ordinal, chunk_count, word_count, title, metadata, language, embedding_model)
        select ${key.appId}::uuid, d.id, ${key.sourceId}::uuid, '', '', d.count, d.size, d.first, d.count,
          d.count * ${wordsPerChunk}::int, 'Document ' || d.first,
          jsonb_build_object('shelf', d.first / ${chunksPerDocument}::int % 10), 'english', ${model}::text
        from unnest(${rows.ids}::uuid[], ${documents.map(({ first }) => next + first)}::int[],
          ${documents.map(({ count }) => count)}::int[], ${documents.map(({ text }) => text.length)}::int[])
          d (id, first, count, size)`,
      tx`
        insert into knowledge_texts (app_id, document_id, content)
        select ${key.appId}::uuid, t.* from unnest(${rows.ids}::uuid[], ${rows.texts}::text[]::bytea[]) t`,
      tx`
        insert into knowledge_chunks (app_id, source_id, document_id, ordinal, id, start_byte, end_byte, start_line,
          end_line, heading_path, hash)
        select ${key.appId}::uuid, ${key.sourceId}::uuid, c.document, c.ordinal, gen_random_uuid(), c.start_byte,
          c.end_byte, c.line, c.line, '[]', ''
        from unnest(${places.map(({ document }) => document)}::uuid[], ${places.map((_place, i) => next + i)}::int[],
          ${places.map(({ startByte }) => startByte)}::int[], ${places.map(({ endByte }) => endByte)}::int[],
          ${places.map(({ line }) => line)}::int[]) c (document, ordinal, start_byte, end_byte, line)`,
      tx`
        update knowledge_indexes set next_ordinal = next_ordinal + ${chunks.length},
          chunk_count = chunk_count + ${chunks.length}, word_count = word_count + ${ranks.length},
          languages = '{english}'
        where app_id = ${key.appId} and source_id = ${key.sourceId}`,
      insertVectors(tx, key, state, model, [
        vectors.map((vector, i) => ({ ordinal: next + i, ...packWithCode(vector) })),
      ]),
    ]);
  });
}

/** A word's own vector in the built-in embedder, as the places and values that are not zero. */
const wordVectors = new Map<number, { places: number[]; values: number[] }>();

function vectorOfWord(rank: number) {
  let known = wordVectors.get(rank);
  if (known === undefined) {
    const vector = embedLexically(words[rank] ?? '', 'english');
    const places = [...vector.keys()].filter((place) => vector[place] !== 0);
    known = { places, values: places.map((place) => vector[place] as number) };
    wordVectors.set(rank, known);
  }
  return known;
}

/**
 * Nearly what the built-in embedder computes for a chunk, in a tenth of the time: n-grams that words share count
 * twice.
 */
function sumWordVectors(ranks: Uint16Array): Float32Array {
  const counts = new Map<number, number>();
  for (const rank of ranks) counts.set(rank, (counts.get(rank) ?? 0) + 1);
  const sum = new Float32Array(dimensions);
  for (const [rank, count] of counts) {
    const { places, values } = vectorOfWord(rank);
    const weight = 1 + Math.log(count);
    for (let i = 0; i < places.length; i++) {
      const place = places[i] as number;
      sum[place] = (sum[place] as number) + weight * (values[i] as number);
    }
  }
  return normalize(sum);
}

/** Sorts the words of the chunks by counting, and writes the postings of each. */
async function addSegment(tx: Transaction, key: SourceKey, ranks: Uint16Array, first: number, count: number) {
  const starts = new Uint32Array(words.length + 1);
  for (const rank of ranks) starts[rank + 1] = (starts[rank + 1] as number) + 1;
  for (let rank = 0; rank < words.length; rank++)
    starts[rank + 1] = (starts[rank + 1] as number) + (starts[rank] as number);
  const next = starts.slice();
  const places = new Uint32Array(ranks.length);
  for (let i = 0; i < ranks.length; i++) {
    const rank = ranks[i] as number;
    const place = next[rank] as number;
    places[place] = i;
    next[rank] = place + 1;
  }
  const [row] = await tx<{ segment: number }[]>`select nextval('knowledge_segment_numbers') as segment`;
  const segment = row?.segment ?? 0;
  let rows: { term: string; postings: Buffer; positions: Buffer }[] = [];
  const write = async () => {
    const hex = (bytes: Buffer) => `\\x${bytes.toString('hex')}`;
    await tx`
      insert into knowledge_postings (app_id, segment, term, postings, positions)
      select ${key.appId}::uuid, ${segment}::bigint, p.* from unnest(${rows.map(({ term }) => term)}::text[],
        ${rows.map(({ postings }) => hex(postings))}::text[]::bytea[],
        ${rows.map(({ positions }) => hex(positions))}::text[]::bytea[]) p`;
    rows = [];
  };
  for (let rank = 0; rank < words.length; rank++) {
    const from = starts[rank] as number;
    const to = starts[rank + 1] as number;
    if (from === to) continue;
    rows.push({ term: words[rank] ?? '', ...packPostings(places.subarray(from, to), first) });
    if (rows.length === 2_000) await write();
  }
  await write();
  await tx`
    insert into knowledge_segments (app_id, source_id, segment, level, first_ordinal, last_ordinal)
    values (${key.appId}, ${key.sourceId}, ${segment}, 3, ${first}, ${first + count - 1})`;
}

let scratch = Buffer.alloc(1 << 20);

/** Writes a variable-length integer at `offset`; returns where the next one goes. */
function put(offset: number, value: number): number {
  let at = offset;
  let rest = value;
  for (; rest > 127; rest >>>= 7) scratch[at++] = (rest & 127) | 128;
  scratch[at++] = rest;
  return at;
}

/** The postings of one word, given its places among the words of all chunks. */
function packPostings(places: Uint32Array, firstOrdinal: number): { postings: Buffer; positions: Buffer } {
  if (scratch.length < places.length * 16 + 64) scratch = Buffer.alloc(places.length * 16 + 64);
  const positionsFrom = scratch.length / 2;
  let positionsAt = positionsFrom;
  let at = 0;
  let chunks = 0;
  let before = 0;
  for (let i = 0; i < places.length; ) {
    const chunk = Math.floor((places[i] as number) / wordsPerChunk);
    let last = 0;
    let frequency = 0;
    for (; i < places.length && Math.floor((places[i] as number) / wordsPerChunk) === chunk; i++) {
      const position = (places[i] as number) % wordsPerChunk;
      positionsAt = put(positionsAt, position - last);
      last = position;
      frequency += 1;
    }
    const ordinal = firstOrdinal + chunk;
    at = put(put(put(at, ordinal - before), frequency * 2), wordsPerChunk);
    before = ordinal;
    chunks += 1;
  }
  const positions = Buffer.from(scratch.subarray(positionsFrom, positionsAt));
  const postings = Buffer.from(scratch.subarray(0, at));
  const count = Buffer.from(scratch.subarray(0, put(0, chunks)));
  return { postings: Buffer.concat([count, postings]), positions };
}
