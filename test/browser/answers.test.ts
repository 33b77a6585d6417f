import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { buildPdf } from '../../src/content/parse/sample-pdf.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { knowledgeOf } from '../support/knowledge.ts';
import { chatEvent, startLanguageModel } from '../support/language-model.ts';
import { findLayoutProblems } from '../support/screens.ts';

const model = await startLanguageModel();
const it = await ConsoleTest.start({
  env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'harbour-small', QUARRY_ANSWERS_JUDGE: 'default' },
});
const without = await ConsoleTest.start();
after(async () => {
  await it.close();
  await without.close();
  await model.close();
});
afterEach(it.closePages);
afterEach(without.closePages);

const line = (y: number, text: string, size = 12) => `BT /F1 ${size} Tf 60 ${y} Td (${text}) Tj ET`;
const pdf = buildPdf(
  [
    [line(700, 'Harbour rules', 20), line(660, 'Ships of more than 60 metres take a pilot at the outer buoy.')],
    [
      line(700, 'Late departure', 20),
      line(660, 'A ship that leaves after noon pays for another day, unless the'),
      line(644, 'harbour master waives the fee in a storm.'),
    ],
  ].map((lines) => lines.join('\n')),
);

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const findAxeProblems = `axe.run().then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`;

/** An app with a PDF and a text in a source each. */
async function fill(browser: ConsoleTest) {
  const app = await loadApp(browser.server);
  const knowledge = knowledgeOf(browser.server, { key: app.secretKey });
  const org = await browser.server.provision.org(app);
  const create = (name: string) => knowledge.createSource({ org: org.id, metadata: { name } });
  const [rules, handbook] = [await create('Harbour rules'), await create('Customs handbook')];
  const body = { filename: 'rules.pdf', content_type: 'application/pdf', org: org.id };
  const file = await browser.server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { ...body, data: Buffer.from(pdf).toString('base64') },
  });
  await knowledge.ingest(rules, { file: file.body.id });
  await knowledge.push(handbook, '# Customs\n\nA ship declares its goods before it leaves.\n', { title: 'Customs' });
  return { app, rules };
}

const question = 'What does a ship pay that leaves after noon?';

async function ask(page: Page): Promise<void> {
  await page.getByLabel('Question').fill(question);
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
}

test('an answer arrives with its citations, which open the passage and the place on the page of the PDF', async () => {
  const { app, rules } = await fill(it);
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/knowledge/${rules}`);
  await page.getByRole('link', { name: 'Ask a question' }).click();
  await page.getByText('Harbour rules', { exact: true }).waitFor();

  // The text is shown while the model writes the rest.
  const rest = Promise.withResolvers<void>();
  const parts = [
    'It pays for **another day**: "A ship that leaves after noon pays for another day" [1]. ',
    'The rules say "the harbour master doubles the fee in a storm" [1]. ',
    'Fishing boats pay nothing.',
  ];
  const write = {
    respond(response: ServerResponse) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chatEvent(parts[0] ?? ''));
      void rest.promise.then(() => {
        for (const part of parts.slice(1)) response.write(chatEvent(part));
        response.write(chatEvent('', { finish_reason: 'stop' }));
        response.end('data: [DONE]\n\n');
      });
    },
  };
  // Only the judge is asked for JSON.
  model.script = ({ response_format }) =>
    response_format === undefined ? write : '{"verdicts":[{"sentence":1,"supported":true}]}';
  await ask(page);
  const answer = page.getByRole('region', { name: 'Answer' });
  await answer.getByText('another day', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  rest.resolve();

  await answer.getByText('3 sentences · 2 not supported · 1 supported by the judge · harbour-small').waitFor();
  await answer.getByText('not supported: the quote was altered').waitFor();
  await answer.getByText('not supported: cites no passage').waitFor();
  const quotes = answer.locator('q');
  assert.deepEqual(await quotes.evaluateAll((all) => all.map((one) => [one.className, one.textContent])), [
    ['quote-found', 'A ship that leaves after noon pays for another day'],
    ['quote-missing unsupported', 'the harbour master doubles the fee in a storm'],
  ]);
  assert.match(page.url(), /query=What\+does/);

  await answer.getByRole('button', { name: 'Passage 1' }).first().click();
  const passage = page.getByRole('region', { name: 'Passages' }).getByRole('listitem');
  await passage.getByRole('link', { name: /^Open the document at line/ }).waitFor();
  const sheet = passage.getByRole('img', { name: 'Page 2 of rules.pdf' });
  await sheet.waitFor();
  await passage.locator('.pdf-box').first().waitFor();
  await sheet.evaluate((picture) => (picture as unknown as { decode(): Promise<void> }).decode());
  // The box covers the line, which begins 60 points from the left and 132 from the upper edge of 612 by 792.
  const [box, whole] = [await passage.locator('.pdf-box').first().boundingBox(), await sheet.boundingBox()];
  assert.ok(box && whole);
  const [left, top] = [(box.x - whole.x) / whole.width, (box.y - whole.y) / whole.height];
  assert.ok(Math.abs(left - 60 / 612) < 0.01 && top > 115 / 792 && top < 132 / 792, JSON.stringify({ left, top }));
  await passage.locator('del').getByText('doubles').waitFor();
  await it.picture(page, 'answer');
  for (const width of [375, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate('scrollTo(0, 0)');
    await it.picture(page, `answer-${width}`);
    assert.deepEqual(await findLayoutProblems(page), [], `${width} pixels`);
  }
  await page.evaluate(axe);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await page.evaluate(findAxeProblems), [], colorScheme);
  }
  await passage.getByRole('link', { name: /^Open the document at line/ }).click();
  await page.getByRole('tab', { name: 'Text' }).waitFor();

  // What cannot be answered is said in words.
  await page.goBack();
  model.script = () => 'NOT_IN_SOURCES';
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.getByRole('heading', { name: 'Not in the sources' }).waitFor();
  model.script = () => ({ raw: [chatEvent('It pays [1]. And')], breaks: true });
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.getByRole('alert').getByText('The server reported an error.').waitFor();
});

test('without a model, the page shows the passages and says what to set', async () => {
  const { app } = await fill(without);
  const page = await without.openAsDeveloper(app, `/console/${app.app.id}/answers`);
  await page.getByText('No model yet').waitFor();
  await ask(page);
  await page.getByText('QUARRY_LLM_URL').waitFor();
  await page.getByRole('link', { name: 'add a model of this app' }).waitFor();
  const passages = page.getByRole('region', { name: 'Passages' });
  await passages.getByRole('img', { name: 'Page 2 of rules.pdf' }).waitFor();
  await without.picture(page, 'answer-without-model');
});
