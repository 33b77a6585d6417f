import type { TestApp } from '../provisioner.ts';
import type { Recorder } from './recorder.ts';

const markdown = `# Invoice 4711

ACME GmbH, Oslo

| Item | Price |
| ---- | ----: |
| Bolt |  3,50 |
| Nut  |  1.20 |
`;

const schema = {
  type: 'object',
  properties: {
    company: { type: 'string' },
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, price: { type: 'number' } },
        required: ['name', 'price'],
        additionalProperties: false,
      },
    },
    due: { type: ['string', 'null'], description: 'Date of payment, as YYYY-MM-DD' },
  },
  required: ['company', 'items'],
  additionalProperties: false,
};

/** What the language model returns for the invoice. */
export const invoiceResponse = {
  text: JSON.stringify({
    company: 'ACME GmbH',
    items: [
      { name: 'Bolt', price: 3.5 },
      { name: 'Nut', price: 1.2 },
    ],
    due: null,
  }),
  usage: [412, 46] as [prompt: number, completion: number],
};

/** Records extracting data from an invoice, in a separate app. */
export async function recordStructuredExtraction(recorder: Recorder, app: TestApp): Promise<void> {
  const as = { key: app.secretKey };
  const data = Buffer.from(markdown).toString('base64');
  const { body: file } = await recorder.send<{ id: string }>('createFile', {
    as,
    body: { filename: 'invoice.md', content_type: 'text/markdown', data },
  });
  const started = await recorder.recordVariant('createExtraction', 'data', 'Data that validates against a schema', {
    as,
    body: {
      file: file.id,
      destination_kind: 'storage',
      schema,
      instructions: 'Prices are in kroner.',
    },
  });
  const path = { extraction: started.id };
  // The stream ends when the extraction does.
  await recorder.send('streamExtraction', { as, path });
  await recorder.recordVariant('getExtraction', 'data', 'Data that validates against a schema', { as, path });
}
