import { hash } from 'node:crypto';
import type { BlobStore } from '../../blob/blob-store.ts';
import type { TextBox, WantedText } from '../../content/parse/pdf/locate.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import { ParseError } from '../../content/parse/types.ts';
import type { Database } from '../../db/database.ts';
import { findFile } from '../../files/store.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { findDocument, readText } from './store.ts';

/** A range of bytes of a document's text, and the pages that it is on, if the text has marks of pages. */
type Place = {
  startByte: number;
  endByte: number;
  startPage?: number | undefined;
  endPage?: number | undefined;
};

const fileBytesMax = 64 * 1024 * 1024;
const beforeBytes = 400;

/** Finds where parts of documents stand on the pages of the PDFs that they come from. */
export function createBoxes({ db, blobs, parser }: { db: Database; blobs: BlobStore; parser: ParserPool }) {
  /** The bytes that the document was read from; undefined if they are not stored, or are not those of a PDF. */
  async function readPdf(appId: string, fileId: string, bytesHash: Buffer): Promise<Buffer | undefined> {
    const file = await findFile(db, appId, fileId);
    if (file === undefined || file.size > fileBytesMax) return undefined;
    const bytes = Buffer.from(await blobs.readAll(file.blobKey, fileBytesMax));
    if (!bytes.subarray(0, 1_024).includes('%PDF-')) return undefined;
    return hash('sha256', bytes, 'buffer').equals(bytesHash) ? bytes : undefined;
  }

  return {
    /**
     * Returns the boxes of each place of a document that the caller may read, one for each line. Empty lists if the
     * document does not come from a stored PDF, or if the text is not found on the page.
     */
    async locate(
      caller: Caller,
      documentId: string,
      places: readonly Place[],
      signal?: AbortSignal,
    ): Promise<TextBox[][]> {
      const none = places.map(() => []);
      const document = await findDocument(db, caller, documentId);
      if (document === undefined || document.fileId === null) return none;
      const pdf = await readPdf(document.appId, document.fileId, document.bytesHash);
      const text = pdf && (await readText(db, document.appId, document.id));
      if (pdf === undefined || text === undefined) return none;
      const wanted = places.map(({ startByte, endByte, startPage = 1, endPage = startPage }): WantedText => {
        const before = text.subarray(Math.max(0, startByte - beforeBytes), startByte).toString();
        return { text: text.subarray(startByte, endByte).toString(), before, startPage, endPage };
      });
      try {
        const options = { lane: caller.appId, ...(signal && { signal }) };
        return await parser.run<TextBox[][]>('locate', { bytes: pdf, wanted }, options);
      } catch (error) {
        // The document was read before, so what cannot be located is not a fault of the request.
        if (error instanceof ParseError) return none;
        throw error;
      }
    },
  };
}
