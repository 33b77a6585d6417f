import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { readJsonObject } from './ingest.ts';
import { findLocalFile } from './local-file.ts';
import { gradeRanking, type Measures, mean, ndcgDepth, quantile, recallDepth, testPaired } from './measures.ts';
import { findScope } from './search.ts';
import { jsonLine, type Session } from './session.ts';

export type EvalOptions = { queries: string; setting?: string[] };

/** A question and the documents that answer it, by id, title or address, with their grades. */
type Question = { query: string; relevant: Map<string, number> };

type Found = {
  data: { document: string; title?: string; source_url?: string }[];
  vectors_unavailable?: string;
  rerank_unavailable?: string;
};

type Outcome = { setting: Record<string, unknown>; measures: Measures[]; latencyMs: number[]; unavailable: number };

const questionsMax = 10_000;
const fileBytesMax = 64 * 1024 * 1024;
const settingsMax = 20;
const eachMode = ['hybrid', 'fulltext', 'vector'].map((mode) => ({ mode }));

/** `quarry eval <source|agent> --queries file.jsonl`: measures the search quality of each setting with your own questions. */
export async function evaluate(session: Session, target: string, options: EvalOptions): Promise<number> {
  const settings = options.setting?.map((text) => readJsonObject('--setting', text)) ?? eachMode;
  if (settings.length > settingsMax) throw new UsageError(`At most ${settingsMax} settings can be compared.`);
  const questions = await readQuestions(options.queries);
  const path = `${await findScope(session, target)}/search`;
  const outcomes: Outcome[] = [];
  for (const [at, setting] of settings.entries()) {
    const measured = await measureSetting(session, path, questions, setting, (done) =>
      session.progress.show(
        `setting ${at + 1} of ${settings.length}, question ${done} of ${questions.length}`,
        (at * questions.length + done) / (settings.length * questions.length),
      ),
    );
    outcomes.push(measured);
  }
  session.progress.clear();
  const report = outcomes.map((outcome) => summarize(outcome, outcomes[0]));
  if (session.json) await session.print(jsonLine({ questions: questions.length, settings: report }));
  else await session.print(describe(report, questions.length));
  return 0;
}

async function measureSetting(
  { client }: Session,
  path: string,
  questions: Question[],
  setting: Record<string, unknown>,
  onProgress: (done: number) => void,
): Promise<Outcome> {
  const outcome: Outcome = { setting, measures: [], latencyMs: [], unavailable: 0 };
  for (const { query, relevant } of questions) {
    onProgress(outcome.measures.length);
    const startedMs = performance.now();
    const found = await client.send<Found>('POST', path, {
      body: { max_results: recallDepth, ...setting, query, group_by: 'document' },
    });
    outcome.latencyMs.push(performance.now() - startedMs);
    if (found.vectors_unavailable !== undefined || found.rerank_unavailable !== undefined) outcome.unavailable += 1;
    const ranking = found.data.map(({ document, title, source_url }) =>
      [document, title, source_url].filter((key) => key !== undefined),
    );
    outcome.measures.push(gradeRanking(relevant, ranking));
  }
  return outcome;
}

function summarize({ setting, measures, latencyMs, unavailable }: Outcome, first: Outcome | undefined) {
  const of = (name: keyof Measures, some = measures) => some.map((one) => one[name]);
  const compared = first !== undefined && first.measures !== measures;
  return {
    setting,
    ndcg: mean(of('ndcg')),
    recall: mean(of('recall')),
    mrr: mean(of('mrr')),
    latency_ms: { p50: quantile(latencyMs, 0.5), p95: quantile(latencyMs, 0.95) },
    ...(unavailable > 0 && { unavailable }),
    ...(compared && {
      against_first: {
        ndcg: mean(of('ndcg')) - mean(of('ndcg', first.measures)),
        p: testPaired(of('ndcg'), of('ndcg', first.measures)),
      },
    }),
  };
}

function describe(report: ReturnType<typeof summarize>[], questions: number): string {
  const head = [
    'setting',
    `nDCG@${ndcgDepth}`,
    `recall@${recallDepth}`,
    'MRR',
    'p50 ms',
    'p95 ms',
    'nDCG against the first',
  ];
  const rows = report.map(({ setting, ndcg, recall, mrr, latency_ms, against_first, unavailable }) => [
    JSON.stringify(setting),
    ...[ndcg, recall, mrr].map((value) => value.toFixed(3)),
    ...[latency_ms.p50, latency_ms.p95].map((value) => value.toFixed(0)),
    [
      against_first &&
        `${against_first.ndcg < 0 ? '' : '+'}${against_first.ndcg.toFixed(3)} (p = ${against_first.p.toFixed(3)})`,
      unavailable && `${unavailable} without vectors or reranker`,
    ]
      .filter(Boolean)
      .join(', '),
  ]);
  const widths = head.map((_title, i) => Math.max(...[head, ...rows].map((row) => row[i]?.length ?? 0)));
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${countOf(questions, 'question')}\n${lines.join('\n')}\n`;
}

/** Lines such as `{"query": "how long do refunds take", "relevant": {"cdo_…": 2, "Refunds": 1}}`. */
async function readQuestions(path: string): Promise<Question[]> {
  const file = await findLocalFile(path);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of file.read()) {
    bytes += part.length;
    if (bytes > fileBytesMax) throw new UsageError(`${path} has more than ${fileBytesMax} bytes.`);
    parts.push(part);
  }
  const questions = Buffer.concat(parts)
    .toString()
    .split('\n')
    .flatMap((line, i) => (line.trim() === '' ? [] : [readQuestion(line, `${path}, line ${i + 1}`)]));
  if (questions.length === 0) throw new UsageError(`${path} contains no question.`);
  if (questions.length > questionsMax) throw new UsageError(`${path} has more than ${questionsMax} questions.`);
  return questions;
}

function readQuestion(line: string, place: string): Question {
  const { query, relevant } = readJsonObject(place, line);
  if (typeof query !== 'string' || query === '') throw new UsageError(`${place}: "query" must be a non-empty string.`);
  const grades = Array.isArray(relevant) ? relevant.map((key) => [key, 1] as const) : Object.entries(relevant ?? {});
  const valid = grades.every(
    ([key, grade]) => typeof key === 'string' && typeof grade === 'number' && Number.isFinite(grade) && grade >= 0,
  );
  if (typeof relevant !== 'object' || !valid || !grades.some(([, grade]) => grade > 0))
    throw new UsageError(`${place}: "relevant" must name documents, as a list or with grades above 0.`);
  return { query, relevant: new Map(grades as [string, number][]) };
}
