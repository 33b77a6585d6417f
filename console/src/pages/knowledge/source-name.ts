import type { KnowledgeSource } from '../../api/generated.ts';

/** A source has no name. Returns the name in its metadata, what it reads, or its kind with the end of its id. */
export function sourceName(source: KnowledgeSource): string {
  const name = source.metadata?.name ?? source.payload?.url ?? source.payload?.bucket ?? source.payload?.file;
  return typeof name === 'string' ? name : `${source.type} …${source.id.slice(-6)}`;
}
