import { createHash } from 'node:crypto';
import { Quarry } from '@quarry/client';

const [email = 'ada@example.com', message = 'Hello!'] = process.argv.slice(2);
const { BASE = 'http://127.0.0.1:8080', KEY = '' } = process.env;
const quarry = new Quarry({ baseUrl: BASE, key: KEY });

const user = await findOrCreateUser(email);
const facts = await recall(user);
const run = await quarry.automations.run(await findOrCreateAgent(), { payload: { message, facts: facts.join('\n') } });
if (run.status !== 'completed') throw new Error(`The agent failed: ${JSON.stringify(run.error)}`);
const { reply, remember } = run.result as { reply: string; remember: string[] };
await keep(user, remember);
console.log(reply);

/** What the agent knows about a user. */
async function recall(user: string): Promise<string[]> {
  const facts: string[] = [];
  for await (const { value } of quarry.kv.entries({ user, prefix: 'memory/' })) facts.push(value);
  return facts;
}

/** One entry for each fact, so conversations at the same moment lose none, and a fact is kept once. */
async function keep(user: string, facts: string[]): Promise<void> {
  for (const fact of facts) {
    const id = createHash('sha256').update(fact).digest('hex').slice(0, 16);
    await quarry.kv.put(`memory/${id}`, { value: fact, user });
  }
}

async function findOrCreateUser(address: string): Promise<string> {
  for await (const { id, email } of quarry.users.list({ search: address })) if (email === address) return id;
  return (await quarry.users.create({ email: address })).id;
}

async function findOrCreateAgent(): Promise<string> {
  const key = 'agent-with-memory';
  for await (const automation of quarry.automations.list({})) if (automation.lookup_key === key) return automation.id;
  const rules = 'You are a helpful assistant. List in "remember" what is worth knowing in later conversations.';
  const schema = {
    type: 'object',
    properties: { reply: { type: 'string' }, remember: { type: 'array', items: { type: 'string' } } },
    required: ['reply', 'remember'],
    additionalProperties: false,
  };
  const messages = [
    { role: 'system', content: `${rules} You know about the user:\n{{$.facts}}` },
    { role: 'user', content: '{{$.message}}' },
  ];
  const nodes = [
    { id: 'answer', kind: 'generate', messages, schema, on_success: 'done' },
    { id: 'done', kind: 'complete', result: '{{$nodes.answer.data}}' },
  ];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'answer', nodes };
  const { id } = await quarry.automations.create({
    name: 'Agent with memory',
    lookup_key: key,
    type: 'invoked',
    workflow,
  });
  await quarry.automations.activate(id);
  return id;
}
