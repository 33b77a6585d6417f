import { Quarry, QuarryError } from '@quarry/client';

const { BASE = '', KEY = '' } = process.env;
const quarry = new Quarry({ baseUrl: BASE, key: KEY });
const user = await quarry.users.create({ email: 'ada@example.com', name: 'Ada' });

let sent = 0;
const page = new File(['<h1>Refunds</h1><p>A refund takes five days.</p>'], 'refunds.html', { type: 'text/html' });
const onProgress = (stored: number) => {
  sent = stored;
};
const file = await quarry.files.upload(page, { onProgress });
// Bun adds the charset.
console.log('uploaded', file.content_type.split(';')[0], sent === page.size);

const extraction = await quarry.extractions.run({ file: file.id, destination_kind: 'storage' });
const output = extraction.outputs?.[0]?.file?.id ?? '';
console.log('extracted', (await (await quarry.files.content(output)).text()).split('\n')[0]);

const names: string[] = [];
for await (const { filename } of quarry.files.list({ page_size: 1 })) names.push(filename);
console.log('listed', names.includes('refunds.html'));

const source = await quarry.knowledge.createSource({ type: 'knowledge/documents', user: user.id });
await quarry.knowledge.add(source.id, { title: 'Refunds', content: { data: 'A refund takes five days.' } });
const { data } = await quarry.knowledge.search({ sources: [source.id], query: 'refund' });
console.log('found', data[0]?.content);

for await (const { event, data: change } of quarry.kv.watch({ user: user.id })) {
  if (event === 'ready') await quarry.kv.put('theme', { value: 'dark', user: user.id });
  if (!('value' in change)) continue;
  console.log('watched', event, change.value);
  break;
}

const error = await quarry.files.get('fil_missing').catch((thrown: unknown) => thrown);
console.log('refused', error instanceof QuarryError && error.code);
