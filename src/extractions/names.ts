import type { Db } from '../db/database.ts';

/**
 * Claims unique names for these stems within one extraction: `stem.md`, then `stem-2.md`, `stem-3.md` …
 * Each stem has a counter, because a site may have ten thousand pages with the same path.
 */
export async function claimNames(
  db: Db,
  extraction: { appId: string; id: string },
  stems: string[],
): Promise<string[]> {
  const counts = new Map<string, number>();
  for (const stem of stems) counts.set(stem, (counts.get(stem) ?? 0) + 1);
  const given = await nextNumbers(db, extraction, counts);
  const names = stems.map((stem) => {
    const number = given.get(stem) ?? 1;
    given.set(stem, number + 1);
    return nameOf(stem, number);
  });
  // A page may itself be called "news-2", like the second "news".
  const taken = await findTaken(db, extraction, names);
  const seen = new Set<string>();
  for (const [index, name] of names.entries()) {
    let free = name;
    while (
      seen.has(free) ||
      (taken.has(name) && free === name) ||
      (free !== name && (await isTaken(db, extraction, free)))
    ) {
      const stem = stems[index] ?? '';
      free = nameOf(stem, (await nextNumbers(db, extraction, new Map([[stem, 1]]))).get(stem) ?? 1);
    }
    seen.add(free);
    names[index] = free;
  }
  return names;
}

function nameOf(stem: string, number: number): string {
  return number === 1 ? `${stem}.md` : `${stem}-${number}.md`;
}

/** Reserves as many numbers as each stem needs, and returns the first of each. */
async function nextNumbers(db: Db, extraction: { appId: string; id: string }, counts: Map<string, number>) {
  const stems = [...counts.keys()].sort();
  const rows = await db<{ stem: string; number: number }[]>`
    insert into extraction_names (app_id, extraction_id, stem, number)
    select ${extraction.appId}, ${extraction.id}, given.* from
      unnest(${stems}::text[], ${stems.map((stem) => counts.get(stem) ?? 1)}::integer[]) as given
    on conflict (app_id, extraction_id, stem) do update set number = extraction_names.number + excluded.number
    returning stem, number`;
  return new Map(rows.map((row) => [row.stem, row.number - (counts.get(row.stem) ?? 1) + 1]));
}

async function findTaken(db: Db, extraction: { appId: string; id: string }, names: string[]): Promise<Set<string>> {
  const rows = await db<{ name: string }[]>`
    select name from extraction_outputs
    where app_id = ${extraction.appId} and extraction_id = ${extraction.id} and name = any(${names}::text[])`;
  return new Set(rows.map((row) => row.name));
}

async function isTaken(db: Db, extraction: { appId: string; id: string }, name: string): Promise<boolean> {
  return (await findTaken(db, extraction, [name])).size > 0;
}

/**
 * The name of a page's output below its destination: the URL's path, "index" for a directory, without .html, with "-" for
 * anything but letters, digits, "." "_" "-". The caller appends `-2`, `-3` on a clash and then `.md`.
 */
export function outputStem(address: string): string {
  const path = new URL(address).pathname.replace(/^\/+/, '');
  const named = path === '' || path.endsWith('/') ? `${path}index` : path.replace(/\.html?$/i, '');
  const segments = decodeOrKeep(named)
    .split('/')
    .map((segment) => segment.replace(/[^\p{L}\p{N}._-]/gu, '-').slice(0, 120))
    .filter((segment) => segment !== '' && segment !== '.' && segment !== '..');
  return segments.join('/').slice(0, 400) || 'index';
}

function decodeOrKeep(path: string): string {
  try {
    return decodeURIComponent(path.replace(/%2f/gi, '-'));
  } catch {
    return path;
  }
}
