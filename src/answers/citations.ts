import { type CheckedQuote, QuoteCheck } from '../content/quotes/check.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { invalidField } from '../lib/errors.ts';
import { formatId } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId, unknownReference } from '../tenancy/references.ts';
import { SearchedText } from './searched-text.ts';

/** Where quotes are looked for. */
type QuoteScope = {
  documents?: readonly string[] | undefined;
  sources?: string[] | undefined;
  agent?: string | undefined;
  versions?: NamedVersions | undefined;
};

/** Versions by the UUIDs of their documents, each with the member of the request that names it. */
export type NamedVersions = ReadonlyMap<string, { number: number; field: string }>;

/** What a quote is compared with, at most. */
const searchedDocumentsMax = 40;
const searchedBytesMax = 64 * 1024 * 1024;
const documentsPerQuote = 3;
/** Words of a quote that are searched for. */
const queryCharactersMax = 500;

export type FoundQuote = CheckedQuote<SearchedText>;

/**
 * Checks quotes against the named documents, or against those that a search finds. All are visible to the caller.
 * `versions` names the version of some of the documents, by their UUIDs.
 */
export async function checkQuotes(
  { documents, search, versions: past }: Pick<Knowledge, 'documents' | 'search' | 'versions'>,
  caller: Caller,
  quotes: readonly string[],
  scope: QuoteScope,
): Promise<FoundQuote[]> {
  const check = await QuoteCheck.of<SearchedText>(quotes);
  const known = new Set<string>();
  let bytes = 0;
  const add = async (id: string): Promise<boolean> => {
    if (known.has(id)) return true;
    known.add(id);
    const version = scope.versions?.get(id);
    const room = searchedBytesMax - bytes;
    const document =
      version === undefined
        ? await documents.findText(caller, id, room)
        : await past.findText(caller, id, version.number, room);
    if (document === undefined) {
      if (version !== undefined && (await documents.findText(caller, id, room)) !== undefined)
        throw invalidField(version.field, 'is not a version of the document');
      return false;
    }
    bytes += document.content.length;
    const searched = new SearchedText(document);
    await check.add(searched, searched.text);
    return true;
  };
  if (scope.documents !== undefined) {
    for (const [index, text] of scope.documents.entries())
      if (!(await add(fieldId('document', 'documents', text)))) throw unknownReference(`documents.${index}`);
    return check.results();
  }
  const { sources, agent } = scope;
  for (const [number, quote] of quotes.entries()) {
    // The first search also checks that the sources exist.
    if (number > 0 && !check.open().includes(number)) continue;
    const query = quote.trim().slice(0, queryCharactersMax).toWellFormed() || ' ';
    const shape = { query, mode: 'fulltext' as const, max_results: documentsPerQuote, group_by: 'document' as const };
    const { hits } =
      agent === undefined
        ? await search.searchVisible(caller, { ...shape, ...(sources && { sources }) })
        : await search.searchAgent(caller, agent, shape);
    for (const { row } of hits) if (known.size < searchedDocumentsMax) await add(row.documentId);
  }
  return check.results();
}

/** Members that say where a quote stands. */
export async function presentPlaces({ status, place, difference }: FoundQuote) {
  if (place === undefined) return { status };
  const { document, text } = place.key;
  const places: { start_byte: number; end_byte: number; start_page?: number; end_page?: number; text: string }[] = [];
  for (const { start, end } of place.ranges) {
    const said = text.slice(start, end);
    const startByte = await place.key.byteAt(start);
    const { startPage, endPage } = place.key.pagesOf(said, { startByte });
    places.push({
      start_byte: startByte,
      end_byte: startByte + Buffer.byteLength(said),
      ...(startPage === undefined || endPage === undefined ? {} : { start_page: startPage, end_page: endPage }),
      text: said,
    });
  }
  return {
    status,
    document: formatId('document', document.id),
    source: formatId('source', document.sourceId),
    ...(document.title === null ? {} : { title: document.title }),
    content_hash: document.contentHash.toString('hex'),
    ...(document.version === null ? {} : { version: document.version }),
    places,
    ...(difference === undefined ? {} : { difference }),
  };
}
