import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Answer } from '../../../src/answers/answer.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { chatEvent, startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';

/* The judge of the operator says whether passages support sentences. Nothing that it writes is trusted. */

const model = await startLanguageModel();
const directory = mkdtempSync(join(tmpdir(), 'quarry-judge-'));
const env = (timeout?: number) => {
  const file = join(directory, `models-${timeout}.json`);
  const judge = { name: 'judge', provider: 'openai', model: 'judge', url: model.url };
  writeFileSync(file, JSON.stringify({ models: [{ ...judge, ...(timeout && { timeout_seconds: timeout }) }] }));
  const writer = { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'writer' };
  return { ...writer, QUARRY_MODELS_FILE: file, QUARRY_ANSWERS_JUDGE: 'judge' };
};
const server = await startTestServer({ env: env() });
after(async () => {
  await server.close();
  await model.close();
  rmSync(directory, { recursive: true });
});

type Script = ReturnType<typeof model.script>;
type Request = Parameters<typeof model.script>[0];

/** The writer writes the text, and the judge what it is given. Returns what the judge was asked. */
function write(text: Script, judge: (request: Request) => Script): Request[] {
  const asked: Request[] = [];
  model.script = (request) => {
    if (request.model !== 'judge') return text;
    asked.push(request);
    return judge(request);
  };
  return asked;
}

const verdicts = (...said: [sentence: number, supported: boolean][]) =>
  JSON.stringify({ verdicts: said.map(([sentence, supported]) => ({ sentence, supported })) });

async function load(on: typeof server) {
  const { app, org } = await on.provision.world();
  const knowledge = knowledgeOf(on, { key: app.secretKey });
  const source = await knowledge.createSource({ org: org.id });
  await knowledge.push(source, '# Returns\n\nGoods may be returned within thirty days of purchase.\n');
  const body = { query: 'When may goods be returned?', sources: [source] };
  const ask = async (more: object = {}) => {
    const response = await knowledge.send<Answer>('POST', '/answers', { ...body, ...more });
    assert.equal(response.status, 200, JSON.stringify(response.body));
    return response.body;
  };
  return { app, knowledge, body, ask };
}
const { app, knowledge, body, ask } = await load(server);

const said =
  'It says "Goods may be returned within thirty days of purchase" [1]. They are returned by post [1]. It is free. It says "goods are never returned to anyone" [1].';
const statuses = ({ sentences }: Answer) => sentences.map(({ status, unsupported }) => [status, unsupported]);

test('sentences are supported if the judge says so, and the others are marked, removed or end the answer', async () => {
  const asked = write(said, () => verdicts([1, true], [2, false]));
  const marked = await ask();
  assert.equal(marked.text, said);
  assert.deepEqual(
    marked.sentences.map(({ status, unsupported, verdict }) => [status, unsupported, verdict]),
    [
      ['supported', false, 'supported'],
      ['cited', true, 'not_supported'],
      ['uncited', true, undefined],
      ['cited', true, undefined],
    ],
  );
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  assert.deepEqual(marked.judge, { model: 'judge', judged: 2, error: null, usage });
  // It is shown the passages and the sentences that passages could support, and no others.
  const [request] = asked;
  assert.match(request?.messages[0]?.content ?? '', /Passage \[1\][\s\S]*within thirty days/);
  assert.match(request?.messages[1]?.content ?? '', /Sentence 2[\s\S]*returned by post/);
  assert.doesNotMatch(request?.messages[1]?.content ?? '', /It is free|never returned to anyone/);
  assert.equal(asked.length, 1);

  const removed = await ask({ unsupported: 'remove' });
  assert.deepEqual(
    [removed.text, removed.removed, statuses(removed)],
    [said.slice(0, said.indexOf(' They')), 3, [['supported', false]]],
  );
  write('They are returned by post [1].', () => verdicts([1, false]));
  for (const unsupported of ['remove', 'refuse'])
    assert.deepEqual([(await ask({ unsupported })).status, (await ask({ unsupported })).text], ['unsupported', '']);
  write('They may be returned [1].', () => verdicts([1, true]));
  assert.deepEqual(statuses(await ask({ unsupported: 'refuse' })), [['supported', false]]);

  const { body: calls } = await knowledge.send<{ data: { model: string; status: string }[] }>('GET', '/model_calls');
  assert.deepEqual([calls.data[0]?.model, calls.data[0]?.status], ['judge', 'succeeded']);
});

test('a judge that fails leaves the lower status, and the answer says why', async () => {
  const text = 'They may be returned [1]. They are returned by post [1].';
  const lower = [
    ['cited', false],
    ['cited', false],
  ];
  for (const [judge, error] of [
    [{ status: 400 }, 'llm_failed'],
    [{ raw: [chatEvent('{"verdicts":[{"sen')], breaks: true }, 'llm_bad_response'],
    [{ text: verdicts([1, true]), finish: 'content_filter' }, 'refused'],
    [{ text: '{"verdicts":[{"sentence":1,', finish: 'length' }, 'invalid_output'],
    ['All of them are supported.', 'invalid_output'],
    ['{"verdicts":[{"sentence":"1","supported":"yes"}]}', 'invalid_output'],
    ['{"verdicts":[{"sentence":1,"supported":true,"text":"more"}]}', 'invalid_output'],
  ] as const) {
    write(text, () => judge as Script);
    for (const unsupported of ['mark', 'remove', 'refuse']) {
      const answer = await ask({ unsupported });
      assert.deepEqual([answer.text, statuses(answer)], [text, lower], JSON.stringify(judge));
      assert.deepEqual([answer.judge?.judged, answer.judge?.error], [0, error], JSON.stringify(judge));
    }
  }
});

test('a judge that lies about sentences rules only on those that it was shown', async () => {
  write('They may be returned [1]. They are returned by post [1]. They are dear [1].', () =>
    verdicts([0, true], [1, true], [2, true], [2, false], [4, true], [-1, false], [99, true]),
  );
  const answer = await ask({ unsupported: 'remove' });
  assert.deepEqual(statuses(answer), [
    ['supported', false],
    ['cited', false],
    ['cited', false],
  ]);
  assert.deepEqual([answer.judge?.judged, answer.judge?.error], [1, null]);
});

test('an app cannot replace the judge, and its budget ends the judging, not the answer', async () => {
  const own = await load(server);
  const theirs = { name: 'judge', provider: 'openai', model: 'ours', url: 'https://models.example.com/v1' };
  assert.equal((await own.knowledge.send('POST', '/models', theirs)).status, 201);
  const asked = write('They may be returned [1].', () => verdicts([1, true]));
  assert.deepEqual(statuses(await own.ask()), [['supported', false]]);
  assert.equal(asked[0]?.model, 'judge');

  // The reservation for the text fits the budget, and that for the verdicts does not.
  const limit = { subject: 'app', period: 'day', tokens: 2_000 };
  const made = await own.knowledge.send('POST', '/model_budgets', limit);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const answer = await own.ask({ max_output_tokens: 16 });
  assert.deepEqual([statuses(answer), answer.judge?.error], [[['cited', false]], 'token_budget_exceeded']);
});

test('a stream sends sentences after their verdicts, eight in a request', async () => {
  const sentences = Array.from({ length: 11 }, (_, at) => `Number ${at} is returned [1].`);
  const asked = write({ text: sentences.join(' '), parts: 30 }, () => verdicts([1, true], [3, false]));
  const stream = async (unsupported: string) => {
    const sent = { ...body, stream: true, unsupported };
    const { text } = await server.api('POST', '/api/v1/answers', { key: app.secretKey, body: sent });
    return [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data = '']) => ({
      event,
      data: JSON.parse(data) as Omit<Answer, 'status'> &
        Pick<Answer['sentences'][number], 'verdict'> & { status: string },
    }));
  };
  const marked = await stream('mark');
  const sent = marked.filter(({ event }) => event === 'sentence').map(({ data }) => data.verdict ?? '');
  const eight = ['supported', '', 'not_supported', '', '', '', '', ''];
  assert.deepEqual(sent, [...eight, ...eight.slice(0, 3)]);
  const arrived = marked.flatMap(({ event, data }) => (event === 'delta' ? data.text : []));
  assert.equal(arrived.join(''), sentences.join(' '));
  assert.deepEqual([asked.length, marked.at(-1)?.data.judge?.judged], [2, 4]);
  assert.match(
    asked[1]?.messages[1]?.content ?? '',
    /Text before the sentences[\s\S]*Number 7 is[\s\S]*Sentence 1[\s\S]*Number 8/,
  );

  const removed = await stream('remove');
  assert.equal(removed.filter(({ event }) => event === 'sentence').length, 9);
  assert.equal(removed.at(-1)?.data.removed, 2);
  const refused = await stream('refuse');
  assert.deepEqual([refused.at(-1)?.data.status, refused.at(-1)?.data.text], ['unsupported', '']);
});

test('a judge that writes nothing is left after its time, and one that does not exist stops the start', async () => {
  const hasty = await startTestServer({ env: env(1) });
  try {
    write('They may be returned [1].', () => ({ respond() {} }));
    const answer = await (await load(hasty)).ask();
    assert.deepEqual([statuses(answer), answer.judge?.error], [[['cited', false]], 'llm_timeout']);
  } finally {
    await hasty.close();
  }
  await assert.rejects(startTestServer({ env: { ...env(), QUARRY_ANSWERS_JUDGE: 'nobody' }, logLevel: 'silent' }), {
    problems: ['QUARRY_ANSWERS_JUDGE names nobody, which is not a model or alias of the operator'],
  });
});
