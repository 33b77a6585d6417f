import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Quarry } from '@quarry/client';

const [directory = 'docs', question = 'What is this about?'] = process.argv.slice(2);
const { BASE = 'http://127.0.0.1:8080', KEY = '' } = process.env;
const quarry = new Quarry({ baseUrl: BASE, key: KEY });

const source = await findOrCreateSource('documentation');
const paths = readdirSync(directory).filter((name) => name.endsWith('.md'));
for (const path of paths) {
  await quarry.knowledge.add(source, {
    title: basename(path, '.md'),
    content: { data: readFileSync(join(directory, path), 'utf8'), content_type: 'text/markdown' },
    // The same bytes are not stored again.
    dedupe: true,
  });
}

const { data: passages } = await quarry.knowledge.search({ sources: [source], query: question, max_results: 5 });
const run = await quarry.automations.run(await findOrCreateAutomation(), {
  payload: { question, passages: passages.map(({ content }, at) => `[${at + 1}] ${content}`).join('\n\n') },
});
if (run.status !== 'completed') throw new Error(`The answer failed: ${JSON.stringify(run.error)}`);
console.log(String(run.result));
for (const [at, { title, start_line: line }] of passages.entries()) console.log(`[${at + 1}] ${title}, line ${line}`);

/** Things are found by their lookup keys, so the program can run again. */
async function findOrCreateSource(key: string): Promise<string> {
  const { data } = await quarry.knowledge.listSources({ lookup_key: key });
  if (data[0]) return data[0].id;
  const org = await quarry.orgs.create({ name: 'Documentation' });
  return (await quarry.knowledge.createSource({ type: 'knowledge/documents', lookup_key: key, org: org.id })).id;
}

async function findOrCreateAutomation(): Promise<string> {
  const key = 'answer-from-passages';
  for await (const automation of quarry.automations.list({})) if (automation.lookup_key === key) return automation.id;
  const rules = 'Answer from the passages alone, and cite them as [1]. If they do not say it, say so.';
  const { id } = await quarry.automations.create({
    name: 'Answer from passages',
    lookup_key: key,
    type: 'invoked',
    workflow: {
      kind: 'WorkflowGraph',
      version: 1,
      start_node: 'answer',
      nodes: [
        {
          id: 'answer',
          kind: 'generate',
          messages: [
            { role: 'system', content: rules },
            { role: 'user', content: '{{$.passages}}\n\nQuestion: {{$.question}}' },
          ],
          on_success: 'done',
        },
        { id: 'done', kind: 'complete', result: '{{$nodes.answer.text}}' },
      ],
    },
  });
  await quarry.automations.activate(id);
  return id;
}
