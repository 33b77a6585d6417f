import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { Reading, type ReadingTerms, Unfinished } from '../../src/content/parse/reading.ts';
import { ParseError } from '../../src/content/parse/types.ts';
import { createLogger } from '../../src/lib/log.ts';
import { pdfOfPages } from '../support/documents.ts';

const sentence = 'The harbour master counts the ships that come and go with every tide, in fair and in foul weather.';

/** A well-formed PDF of many pages of dense text, each with a line of its own. */
function longPdf(pageCount: number, linesOfPage = 50): Uint8Array {
  const pages = Array.from({ length: pageCount }, (_unused, page) => [
    ...Array.from({ length: linesOfPage - 1 }, () => sentence),
    `This is what the log says on its page ${page + 1} of many.`,
    ...Array.from({ length: 9 }, () => 'Fair wind.'),
  ]);
  return pdfOfPages(pages);
}

/** Reads on these terms while each page takes a second of a clock that only the reading moves. */
function readSlowly(terms: ReadingTerms, pageCount = 40) {
  let clockMs = 0;
  const progress: number[] = [];
  const reading = new Reading(
    terms,
    (done) => progress.push(done),
    () => (clockMs += 1_000),
  );
  return parseDocument({ bytes: longPdf(pageCount, 3) }, reading).then((document) => ({ document, progress }));
}

test('when time runs out within a request, the document is refused with the pages that were read', async () => {
  await assert.rejects(readSlowly({ whenOut: 'refuse', deadlineMs: 20_000 }), (error) => {
    assert.ok(error instanceof ParseError);
    assert.equal(error.reason, 'timeout');
    assert.match(error.message, /^The document is too long for 20 seconds: 13 of 40 pages were read\./);
    return true;
  });
});

test('when time runs out in a job, the pages that were read are kept and the missing ones named', async () => {
  const { document, progress } = await readSlowly({ whenOut: 'keep', deadlineMs: 20_000 });
  assert.deepEqual(document.truncated, ['pages 14 to 40: 20 seconds were not enough']);
  assert.equal(document.pages, 40);
  assert.match(document.markdown, /on its page 13 of/);
  assert.doesNotMatch(document.markdown, /on its page 14 of/);
  assert.deepEqual(progress.slice(0, 3), [1, 2, 3]);
});

test('a document of a job that is long is left to a process with more time', async () => {
  await assert.rejects(readSlowly({ whenOut: 'later', deadlineMs: 20_000 }), Unfinished);
  const { document } = await readSlowly({ whenOut: 'later', deadlineMs: 100_000 });
  assert.equal(document.truncated, undefined);
});

test('a PDF of 5,600 dense pages is read, or says what ran out: it is never reported as damaged', async () => {
  const bytes = longPdf(5_600);
  const pool = new ParserPool({
    ...{ workers: 1, memoryMb: 512, deadlineMs: 900_000, jobDeadlineMs: 900_000 },
    log: createLogger('silent'),
  });
  try {
    const { markdown, pages, truncated = [] } = await pool.parse({ bytes, filename: 'log.pdf' }, { patient: true });
    assert.equal(pages, 5_600);
    const read = markdown.match(/on its page \d+ of many/g)?.length ?? 0;
    const [, from] = /^pages (\d+) to 5600: 512 MB of memory were not enough$/.exec(truncated.join()) ?? [];
    assert.equal(read, from === undefined ? 5_600 : Number(from) - 1);
    assert.ok(read > 1_000, `${read} pages`);
  } finally {
    await pool.close();
  }
});
