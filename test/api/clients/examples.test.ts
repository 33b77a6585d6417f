import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { installClientPackage } from '../../support/client-packages.ts';
import { basicEnvironment } from '../../support/command.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { projectRoot } from '../../support/source.ts';

const model = await startLanguageModel();
const server = await startTestServer({ env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small' } });
const directory = mkdtempSync(join(tmpdir(), 'quarry-examples-'));
cpSync(join(projectRoot, 'examples'), directory, { recursive: true });
writeFileSync(join(directory, 'package.json'), '{"type": "module"}');
installClientPackage('typescript', join(directory, 'node_modules'));
after(async () => {
  await server.close();
  await model.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Runs an example as a program of its own, with the package as its users install it. */
async function run(key: string, example: string, ...args: string[]): Promise<string> {
  const env = { ...basicEnvironment(), BASE: server.baseUrl, KEY: key };
  const main = join(directory, example, 'main.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { cwd: directory, env });
  return stdout;
}

test('chat with documentation: the answer comes from the passages, and a second run adds nothing', async () => {
  const { secretKey: key } = await server.provision.app();
  mkdirSync(join(directory, 'docs'));
  writeFileSync(join(directory, 'docs', 'refunds.md'), '# Refunds\n\nA refund takes five days.\n');
  writeFileSync(join(directory, 'docs', 'hours.md'), '# Hours\n\nThe shop opens at nine.\n');
  model.script = ({ messages }) => {
    const asked = messages.at(-1)?.content ?? '';
    return /\[1\] .*five days/s.test(asked) && asked.endsWith('Question: How long does a refund take?')
      ? 'Five days [1].'
      : `Unexpected: ${asked}`;
  };
  for (let round = 0; round < 2; round++) {
    const shown = await run(key, 'chat-with-documentation', 'docs', 'How long does a refund take?');
    assert.match(shown, /^Five days \[1\]\.\n\[1\] refunds, line \d+\n/);
  }
  const documents = await server.api<{ total_entries: number }>('GET', '/api/v1/knowledge_documents', { key });
  assert.equal(documents.body.total_entries, 2);
});

test('invoices with approval: an invoice is read, approved and booked, or refused', async () => {
  const { secretKey: key } = await server.provision.app();
  model.script = () => '{"supplier": "Acme", "total": 1200}';
  writeFileSync(join(directory, 'invoice.txt'), 'Acme Ltd.\nInvoice 17\nTotal: 1200 EUR\n');
  const example = 'invoices-with-approval';
  assert.match(await run(key, example, 'submit', 'invoice.txt'), /^submitted \w+_\w{22}\n$/);
  const [, approval = ''] = /^(\w+) Book 1200 EUR for Acme\?\n$/.exec(await run(key, example, 'list')) ?? [];
  assert.match(await run(key, example, 'approve', approval, 'yes'), /booked: 1200, supplier: 'Acme'/);
  assert.equal(await run(key, example, 'list'), '');

  await run(key, example, 'submit', 'invoice.txt');
  const [, second = ''] = /^(\w+) /.exec(await run(key, example, 'list')) ?? [];
  assert.match(await run(key, example, 'approve', second, 'no'), /code: 'refused'/);
});

test('agent with memory: what a user said is known in the next conversation, and only to them', async () => {
  const { secretKey: key } = await server.provision.app();
  model.script = ({ messages }) => {
    const [system, user] = messages.map(({ content }) => content);
    const knows = system?.includes('The daughter is called Mia.');
    const remember = user?.includes('Mia') ? ['The daughter is called Mia.'] : [];
    return JSON.stringify({ reply: knows ? 'She is called Mia.' : 'I do not know.', remember });
  };
  const say = (who: string, text: string) => run(key, 'agent-with-memory', `${who}@example.com`, text);
  assert.equal(await say('ada', 'What is my daughter called?'), 'I do not know.\n');
  await say('ada', 'My daughter is called Mia.');
  assert.equal(await say('ada', 'What is my daughter called?'), 'She is called Mia.\n');
  assert.equal(await say('bob', 'What is my daughter called?'), 'I do not know.\n');
});
