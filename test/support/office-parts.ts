import { zipSync } from 'fflate';

export function text(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}

export function zip(entries: Record<string, string | Uint8Array>): Uint8Array {
  const files = Object.entries(entries).map(([name, content]) => [
    name,
    typeof content === 'string' ? text(content) : content,
  ]);
  return zipSync(Object.fromEntries(files), { mtime: new Date('2020-01-01T00:00:00Z') });
}

const officeRelation = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const packageRelation = 'http://schemas.openxmlformats.org/package/2006/relationships';

export function relations(list: [id: string, type: string, target: string][]): string {
  const items = list.map(
    ([id, type, target]) => `<Relationship Id="${id}" Type="${officeRelation}/${type}" Target="${target}"/>`,
  );
  return `<?xml version="1.0"?><Relationships xmlns="${packageRelation}">${items.join('')}</Relationships>`;
}
