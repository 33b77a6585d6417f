import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Quarry } from '@quarry/client';

/** Adds the documents of a directory to the source `handbook`. A text that is already there is not added again. */
export async function addHandbook(quarry: Quarry, directory: string): Promise<void> {
  const { data } = await quarry.knowledge.listSources({ lookup_key: 'handbook' });
  const source = data[0];
  if (source === undefined) throw new Error('There is no source "handbook": run `quarry apply app` first.');
  for (const name of readdirSync(directory).filter((each) => each.endsWith('.md')))
    await quarry.knowledge.add(source.id, {
      title: basename(name, '.md'),
      content: { data: readFileSync(join(directory, name), 'utf8'), content_type: 'text/markdown' },
      dedupe: true,
    });
}
