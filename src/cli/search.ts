import { readJsonObject } from './ingest.ts';
import { jsonLine, type Session } from './session.ts';

export type SearchOptions = { limit?: number; mode?: string; minSimilarity?: number; filter?: string };

type Hit = {
  content: string;
  title?: string;
  source_url?: string;
  document: string;
  start_line: number;
  end_line: number;
  score: number;
};

const snippetCharactersMax = 400;
const limitDefault = 10;

/** `quarry search <source|agent> <query>`: prints the best passages first, each with its position. */
export async function search(session: Session, target: string, query: string, options: SearchOptions): Promise<number> {
  // Sources have only ids; anything else is an agent's id or lookup key.
  const kind = /^(cso|ksrc)_/.test(target) ? 'knowledge_sources' : 'agents';
  const found = await session.client.send<{ data: Hit[] }>('POST', `/${kind}/${encodeURIComponent(target)}/search`, {
    body: {
      query,
      max_results: options.limit ?? limitDefault,
      ...(options.mode === undefined ? {} : { mode: options.mode }),
      ...(options.minSimilarity === undefined ? {} : { min_similarity: options.minSimilarity }),
      ...(options.filter === undefined ? {} : { filter: readJsonObject('--filter', options.filter) }),
    },
  });
  if (session.json) await session.print(jsonLine(found));
  else for (const [at, hit] of found.data.entries()) await session.print(describe(hit, at + 1));
  if (found.data.length === 0) session.say('No results.');
  return 0;
}

function describe(hit: Hit, rank: number): string {
  const where = `${hit.document} lines ${hit.start_line}-${hit.end_line}`;
  const head = `${rank}. ${hit.title ?? hit.source_url ?? hit.document}  (${where}, score ${hit.score.toFixed(3)})`;
  const text = hit.content.replace(/\s+/g, ' ').trim();
  const snippet = text.length > snippetCharactersMax ? `${text.slice(0, snippetCharactersMax - 1)}…` : text;
  return `${head}\n   ${snippet}\n\n`;
}
