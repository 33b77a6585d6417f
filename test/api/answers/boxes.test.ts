import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { SignedStatement } from '../../../src/answers/statement.ts';
import { buildPdf } from '../../../src/content/parse/sample-pdf.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';

/* Where quotes of a PDF stand on its pages. */

const model = await startLanguageModel();
const server = await startTestServer({ env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'test' } });
after(async () => {
  await server.close();
  await model.close();
});
const app = await server.provision.app();
const knowledge = knowledgeOf(server, { key: app.secretKey });
const org = await server.provision.org(app);
const source = await knowledge.createSource({ org: org.id });

const line = (y: number, text: string, x = 60) => `BT /F1 12 Tf ${x} ${y} Td (${text}) Tj ET`;
const pages = [
  [
    line(700, 'Goods may be returned within thirty days of the'),
    line(686, 'purchase, if the parcel is unopened.'),
    line(600, 'Keep the receipt of the shop with you.'),
  ],
  [line(700, 'Parcels leave on the next working day.'), line(650, 'They arrive in spring.', 200)],
];
const data = Buffer.from(buildPdf(pages.map((each) => each.join('\n')))).toString('base64');
const body = { filename: 'rules.pdf', content_type: 'application/pdf', data, org: org.id };
const file = await server.api<{ id: string }>('POST', '/api/v1/files', { key: app.secretKey, body });
const ingested = await knowledge.ingest(source, { file: file.body.id });
const document = String(ingested.metadata.document);

async function verify(quotes: string[], more: object = { documents: [document] }) {
  const sent = { quotes, boxes: true, ...more };
  const { status, body: signed, text } = await knowledge.send<SignedStatement>('POST', '/citations/verify', sent);
  assert.equal(status, 200, text);
  return signed.statement.quotes;
}

test('each line of a quote has its rectangle on its page', async () => {
  const [across, second] = await verify(['within thirty days of the purchase, if the parcel', 'They arrive in spring']);
  assert.equal(second?.status, 'exact');
  const [upper, lower, ...none] = across?.places?.[0]?.boxes ?? [];
  assert.ok(upper && lower && none.length === 0, JSON.stringify(across));
  for (const { page, page_width, page_height } of [upper, lower])
    assert.deepEqual([page, page_width, page_height], [1, 612, 792]);
  // The base lines are 92 and 106 points below the upper edge.
  assert.ok(upper.top > 75 && upper.top < 86 && upper.bottom > 90 && upper.bottom < 98, JSON.stringify(upper));
  assert.ok(lower.top > 89 && lower.top < 100 && lower.bottom > 104 && lower.bottom < 112, JSON.stringify(lower));
  // The quote begins in the middle of the upper line, and ends in the middle of the lower one.
  assert.ok(upper.left > 160 && upper.right > 280 && upper.right < 340, JSON.stringify(upper));
  assert.ok(Math.abs(lower.left - 60) < 3 && lower.right < 240, JSON.stringify(lower));
  const [box] = second?.places?.[0]?.boxes ?? [];
  assert.ok(box && box.page === 2 && Math.abs(box.left - 200) < 3, JSON.stringify(second));
});

test('without `boxes`, with another text or for another document there are none', async () => {
  const plain = await knowledge.send<SignedStatement>('POST', '/citations/verify', {
    ...{ quotes: ['They arrive in spring'], documents: [document] },
  });
  assert.equal(plain.body.statement.quotes[0]?.places?.[0]?.boxes, undefined);
  const note = await knowledge.push(source, 'Lapwings nest behind the observatory.');
  const [quote] = await verify(['Lapwings nest behind'], { documents: [note] });
  assert.deepEqual([quote?.status, quote?.places?.[0]?.boxes], ['exact', []]);
});

test('the quotes of an answer have their rectangles', async () => {
  model.script = ({ messages }) => {
    const [, number] = /\[(\d+)\][^[]*?They arrive in spring/s.exec(messages[0]?.content ?? '') ?? [];
    return `It says "They arrive in spring" [${number ?? 1}].`;
  };
  const asked = { query: 'When do they arrive?', sources: [source], boxes: true };
  const { body: answer, text } = await knowledge.send<{
    sentences: { quotes: { status: string; places?: { boxes?: { page: number }[] }[] }[] }[];
  }>('POST', '/answers', asked);
  const [quote] = answer.sentences[0]?.quotes ?? [];
  assert.deepEqual([quote?.status, quote?.places?.[0]?.boxes?.map(({ page }) => page)], ['exact', [2]], text);
});
