import { defined } from '../../lib/defined.ts';
import { looksLikeId } from '../../lib/ids.ts';
import { ApiError, UsageError } from '../errors.ts';
import { readJsonObject } from './ingest.ts';
import { findId } from './names.ts';
import { jsonLine, type Session } from './session.ts';

export type SearchOptions = { limit?: number; mode?: string; minSimilarity?: number; filter?: string };

type Passage = {
  content: string;
  title?: string;
  source_url?: string;
  fragment?: string;
  document: string;
  start_line: number;
  end_line: number;
  score: number;
};

const snippetCharactersMax = 1_200;
const limitDefault = 10;

/**
 * `quarry search [source|agent] <query>`: prints the best passages first, each with its position. One argument is a
 * query over everything visible.
 */
export async function search(session: Session, words: string[], options: SearchOptions): Promise<number> {
  const query = words.slice(words.length > 1 ? 1 : 0).join(' ');
  const found = await session.client.send<{ data: Passage[] }>('POST', await searchPath(session, words), {
    body: {
      query,
      max_results: options.limit ?? limitDefault,
      ...defined({ mode: options.mode, min_similarity: options.minSimilarity }),
      ...(options.filter === undefined ? {} : { filter: readJsonObject('--filter', options.filter) }),
    },
  });
  if (session.json) await session.print(jsonLine(found));
  else for (const [at, hit] of found.data.entries()) await session.print(describe(hit, at + 1));
  if (found.data.length === 0) session.say('No results.');
  return 0;
}

async function searchPath(session: Session, [target = '', ...rest]: string[]): Promise<string> {
  if (rest.length > 0) return `${await findScope(session, target)}/search`;
  if (looksLikeId(target)) throw new UsageError(`What should be searched in ${target}? Write the query after it.`);
  return '/knowledge_search';
}

/** The path of a source or an agent, by id or name. A name is looked up among sources first. */
export async function findScope({ client }: Session, target: string): Promise<string> {
  if (looksLikeId(target))
    return `/${/^(cso|ksrc)_/.test(target) ? 'knowledge_sources' : 'agents'}/${encodeURIComponent(target)}`;
  try {
    return `/knowledge_sources/${await findId(client, 'source', target)}`;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  try {
    return `/agents/${await findId(client, 'agent', target)}`;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw new ApiError(
      404,
      `404: No source or agent is called "${target}". To search everything, put the whole query in quotation marks.`,
    );
  }
}

function describe(hit: Passage, rank: number): string {
  const where = `${hit.document} lines ${hit.start_line}-${hit.end_line}`;
  const head = `${rank}. ${hit.title ?? hit.source_url ?? hit.document}  (${where}, score ${hit.score.toFixed(3)})`;
  const link = hit.source_url === undefined ? '' : `   ${addressOf(hit.source_url, hit.fragment)}\n`;
  return `${head}\n${link}${indent(shorten(hit.content.trim()))}\n\n`;
}

/** The passage's place on its page, if the chunk's heading has a fragment. */
function addressOf(url: string, fragment: string | undefined): string {
  return fragment === undefined ? url : `${url}#${fragment}`;
}

/** Cuts the text at a line end, so that Markdown stays valid. */
function shorten(text: string): string {
  if (text.length <= snippetCharactersMax) return text;
  const end = text.lastIndexOf('\n', snippetCharactersMax);
  return `${text.slice(0, end > 0 ? end : snippetCharactersMax)}\n…`;
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '   ');
}
