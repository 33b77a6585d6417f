import { looksLikeId } from '../../lib/ids.ts';
import type { Client } from '../client/client.ts';
import { findId, type NamedKind } from '../client/names.ts';
import { ApiError, UsageError } from '../errors.ts';
import { type Change, compareValues } from './compare.ts';
import type { ConfigFile, Described, Directory, Problem } from './directory.ts';
import { type Kind, kinds, type Values, valuesOf, withDefaults, writeOnly } from './kinds.ts';
import { isSame, type Record, readRecord, recordFolder } from './record.ts';
import { mapStrings, replaceReferences, unescapeReferences } from './references.ts';

export type Step =
  | { action: 'create'; kind: string; key: string; file: string; described?: Described; config?: ConfigFile }
  | {
      action: 'update';
      kind: string;
      key: string;
      file: string;
      changes: Change[];
      id?: string;
      described?: Described;
      config?: ConfigFile & { type: string };
    }
  | { action: 'delete'; kind: string; key: string; id?: string };

export type Plan = {
  name: string;
  steps: Step[];
  unchanged: number;
  /** Created earlier and no longer in the directory, but not to be deleted. */
  left: { kind: string; key: string }[];
  problems: Problem[];
  record: Record;
};

type Present = { resources: Map<string, Values & { id: string }>; configs: Map<string, Values> };

/** Compares a directory with the app. Writes nothing. */
export async function makePlan(client: Client, directory: Directory, { prune }: { prune: boolean }): Promise<Plan> {
  const [record, present] = [await readRecord(client, directory.name), await readPresent(client)];
  const problems = [...directory.problems];
  const steps: Step[] = [];
  const names = createNames(client, directory, present);
  for (const described of inOrder(directory.resources, problems)) {
    const step = await compareResource(described, present, names, record, problems);
    if (step) steps.push(step);
  }
  for (const config of directory.configs) steps.push(...(await compareConfig(client, config, present, problems)));
  const gone = listGone(directory, present, record);
  if (prune) steps.push(...gone.map((one) => ({ action: 'delete' as const, ...one })));
  const changed = steps.filter(({ action }) => action !== 'delete').length;
  return {
    name: directory.name,
    steps,
    unchanged: directory.resources.length + directory.configs.length - changed,
    left: prune ? [] : gone,
    problems,
    record,
  };
}

async function readPresent(client: Client): Promise<Present> {
  const resources = new Map<string, Values & { id: string }>();
  for (const kind of kinds)
    for await (const one of listAll(client, kind.path))
      if (typeof one[kind.key] === 'string') resources.set(`${kind.name} ${one[kind.key]}`, one);
  const configs = new Map<string, Values>();
  for await (const one of listAll(client, '/config')) configs.set(String(one.virtual_path), one);
  return { resources, configs };
}

const pagesMax = 1_000;

/** Everything that a list has, page by page. */
export async function* listAll(client: Client, path: string): AsyncGenerator<Values & { id: string }> {
  for (let page = 1; page <= pagesMax; page++) {
    type Page = { data: (Values & { id: string })[]; has_next: boolean };
    const found = await client.send<Page>('GET', path, { query: { page, page_size: 100 } });
    yield* found.data;
    if (!found.has_next) return;
  }
}

/** Finds the ids of names; of a source that is still to be created, `undefined`. */
type Names = (kind: NamedKind, name: string) => Promise<string | undefined>;

function createNames(client: Client, directory: Directory, present: Present): Names {
  const found = new Map<string, Promise<string>>();
  const planned = new Set(directory.resources.map(({ kind, key }) => `${kind.name} ${key}`));
  return async (kind, name) => {
    const key = `${kind} ${name}`;
    const known = present.resources.get(key);
    if (looksLikeId(name) || known) return known?.id ?? name;
    if (planned.has(key)) return undefined;
    const id = found.get(key) ?? findId(client, kind, name);
    found.set(key, id);
    return id;
  };
}

/**
 * The values as a request has them: names are ids. What a source that does not exist yet is needed for keeps its name.
 */
export async function resolveValues(
  { kind, values, file, locate }: Described,
  names: Names,
  problems: Problem[],
): Promise<Values> {
  const wanted = new Map<string, string | undefined>();
  const look = async (named: NamedKind, name: string, path: (string | number)[]) => {
    try {
      wanted.set(`${named} ${name}`, await names(named, name));
    } catch (error) {
      if (!(error instanceof UsageError || (error instanceof ApiError && error.status === 404))) throw error;
      problems.push({ ...locate(path), file, message: error.message.replace(/^404: /, '') });
    }
  };
  const found: Promise<void>[] = [];
  mapStrings(values, (text, path) => {
    const member = kind.names[String(path[0])];
    if (member !== undefined && path.length === 1 && !text.includes('${')) found.push(look(member, text, path));
    replaceReferences(text, ['source', 'org', 'team', 'user', 'agent'], (named, name) => {
      found.push(look(named as NamedKind, name, path));
      return undefined;
    });
    return text;
  });
  await Promise.all(found);
  return mapStrings(values, (text, path) => {
    const member = kind.names[String(path[0])];
    if (member !== undefined && path.length === 1 && !text.includes('${'))
      return wanted.get(`${member} ${text}`) ?? text;
    const replaced = replaceReferences(text, ['source', 'org', 'team', 'user', 'agent'], (named, name) =>
      wanted.get(`${named} ${name}`),
    );
    return unescapeReferences(replaced);
  }) as Values;
}

async function compareResource(
  described: Described,
  present: Present,
  names: Names,
  record: Record,
  problems: Problem[],
): Promise<Step | undefined> {
  const { kind, key, file, written, locate } = described;
  const values = await resolveValues(described, names, problems);
  const about = { kind: kind.name, key, file };
  const found = present.resources.get(`${kind.name} ${key}`);
  if (!found) return { action: 'create', ...about, described };
  const { shown, hidden } = splitWriteOnly(kind, withDefaults(kind, values));
  const changes = compareValues(withDefaults(kind, valuesOf(kind, found)), shown, written);
  for (const { path } of changes)
    if (kind.fixed.includes(path)) {
      const message = `${path} cannot be changed: delete the ${kind.name} first, or use another ${kind.key}`;
      problems.push({ ...locate([path]), file, message });
    }
  if (hidden !== undefined && !isSame(record.fingerprints[`${kind.name} ${key}`], hidden))
    changes.push({ path: writeOnly.path.join('.'), secret: 'a value from the environment' });
  return changes.length === 0 ? undefined : { action: 'update', ...about, changes, id: found.id, described };
}

/** Separates the value that the API never returns. */
export function splitWriteOnly(kind: Kind, values: Values): { shown: Values; hidden: string | undefined } {
  const [outer, inner] = writeOnly.path;
  const holder = values[outer] as Values | null | undefined;
  if (kind.name !== writeOnly.kind || !holder || holder[inner] === undefined)
    return { shown: values, hidden: undefined };
  const { [inner]: hidden, ...rest } = holder;
  return { shown: { ...values, [outer]: rest }, hidden: String(hidden) };
}

async function compareConfig(
  client: Client,
  config: ConfigFile,
  present: Present,
  problems: Problem[],
): Promise<Step[]> {
  const { path, file, content } = config;
  if (path.startsWith(recordFolder)) {
    problems.push({ file, line: 1, column: 1, message: `${recordFolder} is reserved for what apply records` });
    return [];
  }
  const about = { kind: 'config', key: path, file };
  const found = present.configs.get(path);
  if (!found) return [{ action: 'create', ...about, config }];
  const { content: now } = await client.send<{ content: string }>('GET', `/config/${configPath(path)}`);
  if (now === content) return [];
  const changes = [{ path: 'content', from: now, to: content }];
  return [{ action: 'update', ...about, changes, config: { ...config, type: String(found.content_type) } }];
}

export function configPath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

/**
 * What `apply` created, that still exists, and that the directory no longer has, but no organisations. Sources are the
 * last.
 */
function listGone(
  directory: Directory,
  present: Present,
  record: Record,
): { kind: string; key: string; id?: string }[] {
  const kept = new Set([
    ...directory.resources.map(({ kind, key }) => `${kind.name} ${key}`),
    ...directory.configs.map(({ path }) => `config ${path}`),
  ]);
  const isKept = (name: string) => kinds.find((kind) => kind.name === name)?.isKept === true;
  const gone = record.created.filter(({ kind, key }) => !isKept(kind) && !kept.has(`${kind} ${key}`));
  return gone
    .flatMap(({ kind, key, id }) => {
      const found = kind === 'config' ? present.configs.get(key) : present.resources.get(`${kind} ${key}`);
      if (!found || (id !== undefined && id !== found.id)) return [];
      return [{ kind, key, id: String(found.id) }];
    })
    .sort((one, other) => Number(one.kind === 'source') - Number(other.kind === 'source'));
}

/** Sources come after their parents. A cycle is a problem. */
function inOrder(resources: Described[], problems: Problem[]): Described[] {
  const byKey = new Map(resources.map((one) => [`${one.kind.name} ${one.key}`, one]));
  const ordered = new Set<Described>();
  const visit = (one: Described, above: Described[]) => {
    if (ordered.has(one)) return;
    if (above.includes(one)) {
      const message = 'parent_source leads back to this source';
      problems.push({ ...one.locate(['parent_source']), file: one.file, message });
      return;
    }
    const parent = one.kind.name === 'source' ? byKey.get(`source ${one.values.parent_source}`) : undefined;
    if (parent) visit(parent, [...above, one]);
    ordered.add(one);
  };
  for (const one of resources) visit(one, []);
  return [...ordered];
}
