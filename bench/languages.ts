/**
 * How well search works in languages other than English, through the API: nDCG@10 of full text and hybrid on small
 * sets of questions in Chinese, Japanese, Korean and Thai, and in five European languages mixed. The documents of all
 * sets are in one source.
 *
 *   node bench/languages.ts [--language english]
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { gradeRanking } from '../src/cli/client/measures.ts';
import { startBenchServer } from './support.ts';

type Questions = {
  name: string;
  documents: { id: string; text: string }[];
  queries: { query: string; relevant: string[] }[];
};

const { values } = parseArgs({ options: { language: { type: 'string' } } });
const file = new URL('../test/fixtures/languages/questions.json', import.meta.url);
const sets = JSON.parse(readFileSync(file, 'utf8')) as Questions[];
const server = await startBenchServer();
try {
  const source = await server.makeSource('knowledge/documents', values.language ? { language: values.language } : {});
  const items = sets.flatMap(({ documents }) =>
    documents.map(({ id, text }) => ({ content: { data: text }, metadata: { id } })),
  );
  await server.finished(await server.post(`/api/v1/knowledge_sources/${source}/ingest/batch`, { items }));
  for (const mode of ['fulltext', 'hybrid']) {
    for (const { name, queries } of sets) {
      let sum = 0;
      for (const { query, relevant } of queries) {
        const { data } = await server.post<{ data: { metadata: { id: string } }[] }>(
          `/api/v1/knowledge_sources/${source}/search`,
          { query, mode },
        );
        const grades = new Map(relevant.map((id) => [id, 1]));
        sum += gradeRanking(
          grades,
          data.map((hit) => [hit.metadata.id]),
        ).ndcg;
      }
      console.log(
        `${mode.padEnd(9)} ${name.padEnd(9)} ${queries.length} queries  nDCG@10 ${(sum / queries.length).toFixed(3)}`,
      );
    }
  }
} finally {
  await server.close();
}
