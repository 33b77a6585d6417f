import { Quarry } from '@quarry/client';

const [command, argument = '', verdict = ''] = process.argv.slice(2);
const { BASE = 'http://127.0.0.1:8080', KEY = '' } = process.env;
const quarry = new Quarry({ baseUrl: BASE, key: KEY });

const invoice = {
  type: 'object',
  properties: { supplier: { type: 'string' }, total: { type: 'number' } },
  required: ['supplier', 'total'],
  additionalProperties: false,
} as const;

if (command === 'submit') await submit(argument);
else if (command === 'list') await list();
else if (command === 'approve') await approve(argument, verdict === 'yes');
else throw new Error('Usage: main.ts submit FILE | list | approve APPROVAL yes|no');

/** Reads an invoice, and starts the run that waits for its approval. */
async function submit(path: string): Promise<void> {
  const file = await quarry.files.upload(path);
  const extraction = await quarry.extractions.run({ file: file.id, destination_kind: 'storage', schema: invoice });
  const data = extraction.outputs?.[0]?.data;
  if (data === undefined) throw new Error(`The invoice could not be read: ${extraction.failure_reason}`);
  const run = await quarry.automations.invoke(await findOrCreateAutomation(), {
    payload: { ...data, file: file.id },
  });
  console.log(`submitted ${run.id}`);
}

async function list(): Promise<void> {
  for await (const { id, question } of quarry.runs.listApprovals({})) console.log(`${id} ${question}`);
}

/** Answers, and waits until the run has booked or refused the invoice. */
async function approve(approval: string, ok: boolean): Promise<void> {
  const { run } = await quarry.runs.answerApproval(approval, { data: { ok } });
  if (run === undefined) throw new Error('Only a secret key sees the run of an approval.');
  const { status, result, error } = await quarry.runs.waitFor(run);
  console.log(status === 'completed' ? result : error);
}

async function findOrCreateAutomation(): Promise<string> {
  const key = 'book-invoice';
  for await (const automation of quarry.automations.list({})) if (automation.lookup_key === key) return automation.id;
  const { id } = await quarry.automations.create({
    name: 'Book an invoice',
    lookup_key: key,
    type: 'invoked',
    input_schema: { type: 'object', required: ['supplier', 'total', 'file'] },
    workflow: {
      kind: 'WorkflowGraph',
      version: 1,
      start_node: 'ask',
      nodes: [
        {
          id: 'ask',
          kind: 'approve',
          question: 'Book {{$.total}} EUR for {{$.supplier}}?',
          timeout_seconds: 7 * 86_400,
          on_success: 'decide',
        },
        { id: 'decide', kind: 'conditional', when: '$nodes.ask.ok', on_true: 'book', on_false: 'refuse' },
        { id: 'book', kind: 'complete', result: { booked: '{{$.total}}', supplier: '{{$.supplier}}' } },
        { id: 'refuse', kind: 'fail', code: 'refused', message: 'The invoice of {{$.supplier}} was refused.' },
      ],
    },
  });
  await quarry.automations.activate(id);
  return id;
}
