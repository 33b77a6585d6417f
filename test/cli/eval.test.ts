import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { callQuarry } from '../support/command.ts';
import { knowledgeOf } from '../support/knowledge.ts';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer();
const { app, org } = await server.provision.world();
const directory = mkdtempSync(join(tmpdir(), 'quarry-eval-'));
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});
const knowledge = knowledgeOf(server, { key: app.secretKey });
const env = { QUARRY_DATA_DIR: directory, QUARRY_API_URL: server.baseUrl, QUARRY_API_KEY: app.secretKey };
const file = join(directory, 'questions.jsonl');

const source = await knowledge.createSource({ org: org.id, metadata: { name: 'Animals' } });
const whale = await knowledge.push(source, 'Whales sing to each other.', { metadata: { shelf: 1 } });
await knowledge.push(source, 'Penguins swim in cold water.', { title: 'Penguins', metadata: { shelf: 2 } });

type Report = {
  questions: number;
  settings: {
    setting: Record<string, unknown>;
    ndcg: number;
    recall: number;
    mrr: number;
    latency_ms: { p50: number; p95: number };
    against_first?: { ndcg: number; p: number };
  }[];
};

async function evaluate(questions: unknown[], ...args: string[]) {
  writeFileSync(file, questions.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n'));
  return callQuarry(['eval', source, '--queries', file, ...args], { env });
}

const questions = [
  { query: 'singing whales', relevant: [whale] },
  { query: 'swimming penguin', relevant: { Penguins: 2 } },
  { query: 'penguins in water', relevant: { Penguins: 1, [whale]: 0 } },
];

test('eval scores each mode by the questions of a file', async () => {
  const ran = await evaluate(questions, '--json');
  assert.equal(ran.code, 0, ran.stderr);
  const report = JSON.parse(ran.stdout) as Report;
  assert.equal(report.questions, 3);
  assert.deepEqual(
    report.settings.map(({ setting, ndcg, recall, mrr }) => [setting.mode, ndcg, recall, mrr]),
    ['hybrid', 'fulltext', 'vector'].map((mode) => [mode, 1, 1, 1]),
  );
  assert.ok(report.settings.every(({ latency_ms: { p50, p95 } }) => p50 > 0 && p95 >= p50));
  const shown = await evaluate(questions);
  assert.match(shown.stdout, /^3 questions\nsetting .*nDCG@10 .*recall@100 .*MRR/);
  assert.match(shown.stdout, /\{"mode":"vector"\} +1\.000 +1\.000 +1\.000 +\d+ +\d+ +\+0\.000 \(p = 1\.000\)\n$/);
});

test('eval finds the source by its name as well as by its id', async () => {
  writeFileSync(file, JSON.stringify({ query: 'singing whales', relevant: [whale] }));
  const ran = await callQuarry(['eval', 'animals', '--queries', file, '--json'], { env });
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal((JSON.parse(ran.stdout) as Report).settings[0]?.ndcg, 1);
  const missing = await callQuarry(['eval', 'plants', '--queries', file], { env });
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /No source or agent is called "plants"/);
});

test('eval compares settings with the first by a paired test', async () => {
  const filtered = '{"mode":"fulltext","filter":{"shelf":1}}';
  const ran = await evaluate(questions, '--json', '--setting', '{"mode":"fulltext"}', '--setting', filtered);
  assert.equal(ran.code, 0, ran.stderr);
  const [first, second] = (JSON.parse(ran.stdout) as Report).settings;
  assert.deepEqual([first?.ndcg, first?.against_first], [1, undefined]);
  assert.ok(Math.abs((second?.ndcg ?? 0) - 1 / 3) < 1e-9);
  assert.ok(Math.abs((second?.against_first?.ndcg ?? 0) + 2 / 3) < 1e-9);
  assert.ok((second?.against_first?.p ?? 0) > 0.4);
});

test('eval refuses a file or setting that it cannot use, and names the line', async () => {
  const cases: [unknown[], string[], RegExp][] = [
    [[], [], /contains no question/],
    [['{"query": '], [], /line 1 must be a JSON object/],
    [[questions[0], { query: 'x' }], [], /line 2: "relevant"/],
    [[{ query: 'x', relevant: { a: 0 } }], [], /line 1: "relevant"/],
    [[{ query: 'x', relevant: [1] }], [], /line 1: "relevant"/],
    [[{ query: 'x', relevant: { a: 'b' } }], [], /line 1: "relevant"/],
    [[{ query: 3, relevant: ['a'] }], [], /line 1: "query"/],
    [questions, ['--setting', '[]'], /--setting must be a JSON object/],
  ];
  for (const [lines, args, message] of cases) {
    const ran = await evaluate(lines, ...args);
    assert.deepEqual([ran.code, ran.stdout], [2, '']);
    assert.match(ran.stderr, message);
  }
  const unknown = await evaluate(questions, '--setting', '{"magic":1}');
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /magic/);
});
