import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { createDirectories } from '../../lib/directories.ts';
import type { Client } from '../client/client.ts';
import { findId, type NamedKind } from '../client/names.ts';
import type { Session } from '../client/session.ts';
import { ApiError, UsageError } from '../errors.ts';
import { type Kind, kinds, type Values, valuesOf, withDefaults } from './kinds.ts';
import { configPath, listAll } from './plan.ts';
import { recordFolder } from './record.ts';
import { escapeReferences, mapStrings } from './references.ts';

/** `quarry export <directory>`: writes an app as files that `apply` reads. Returns the exit code. */
export async function exportTo(session: Session, root: string): Promise<number> {
  if (existsSync(root) && readdirSync(root).length > 0)
    throw new UsageError(`${root} is not empty. Name a new directory.`);
  // An app without anything to write is an empty directory, which apply reads.
  createDirectories(root);
  const names = createNames(session.client);
  let files = 0;
  for (const kind of kinds) files += await exportKind(session, root, kind, names);
  files += await exportConfigs(session, root);
  session.say(`Wrote ${files} files to ${root}`);
  return 0;
}

async function exportKind(session: Session, root: string, kind: Kind, names: Names): Promise<number> {
  const left: string[] = [];
  const taken = new Set<string>();
  for await (const resource of listAll(session.client, kind.path)) {
    const key = resource[kind.key];
    // Installations create their own sources.
    if (kind.name === 'source' && resource.context_installation !== null) continue;
    if (typeof key !== 'string') left.push(resource.id);
    else write(join(root, kind.folder, nameFile(key, taken)), await describe(session, kind, resource, names));
  }
  if (left.length > 0)
    session.say(
      `Left out ${left.length} of ${kind.folder}, which have no ${kind.key}: ${left.slice(0, idsShown).join(', ')}${left.length > idsShown ? ', …' : ''}`,
    );
  return taken.size;
}

const idsShown = 5;

/** The file of a resource, without what has its default. */
async function describe(session: Session, kind: Kind, listed: Values, names: Names): Promise<string> {
  // Lists of automations have no graphs.
  const resource = await session.client.send<Values>('GET', `${kind.path}/${listed.id}`);
  const defaults = withDefaults(kind, {});
  const all = Object.entries(valuesOf(kind, resource)).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name]),
  );
  const values = await namesInsteadOfIds(kind, Object.fromEntries(all), names);
  const first = [kind.key, 'name', 'type'];
  const sorted = Object.entries(values).sort(([one], [other]) => rank(first, one) - rank(first, other));
  const text = stringify(Object.fromEntries(sorted), { lineWidth: 120 });
  if (kind.name !== 'issuer' || values.console === undefined) return text;
  return `${text}# The server returns no secrets. To set this one, add to console:\n#   client_secret: \${env:CLIENT_SECRET}\n`;
}

function rank(first: string[], member: string): number {
  const at = first.indexOf(member);
  return at < 0 ? first.length : at;
}

type Names = (kind: NamedKind, id: string) => Promise<string | undefined>;

const prefixes: { [prefix: string]: NamedKind } = {
  cso: 'source',
  org: 'org',
  tem: 'team',
  tea: 'team',
  usr: 'user',
  agt: 'agent',
};

const ids = new RegExp(`\\b(${Object.keys(prefixes).join('|')})_[0-9A-Za-z]{22}\\b`, 'g');

/** Ids differ from server to server; names do not. An id that has no name of its own stays. */
async function namesInsteadOfIds(kind: Kind, values: Values, names: Names): Promise<Values> {
  const found = new Map<string, string | undefined>();
  const looks: Promise<void>[] = [];
  mapStrings(values, (text) => {
    for (const [id, prefix = ''] of text.matchAll(ids)) {
      const named = prefixes[prefix];
      if (named !== undefined) looks.push(names(named, id).then((name) => void found.set(id, name)));
    }
    return text;
  });
  await Promise.all(looks);
  return mapStrings(values, (text, path) => {
    const isMember = path.length === 1 && kind.names[String(path[0])] !== undefined;
    if (isMember) return found.get(text) ?? text;
    return escapeReferences(text).replace(ids, (id, prefix: string) => {
      const name = found.get(id);
      return name === undefined ? id : `\${${prefixes[prefix]}:${name}}`;
    });
  }) as Values;
}

/** Finds names that lead back to the same resource. */
function createNames(client: Client): Names {
  const found = new Map<string, Promise<string | undefined>>();
  const members: { [kind: string]: readonly [path: string, member: string] } = {
    source: ['/knowledge_sources', 'lookup_key'],
    org: ['/orgs', 'slug'],
    team: ['/teams', 'name'],
    user: ['/users', 'email'],
    agent: ['/agents', 'lookup_key'],
  };
  const look = async (kind: NamedKind, id: string) => {
    const [path, member] = members[kind] ?? ['', ''];
    try {
      const name = (await client.send<Values>('GET', `${path}/${id}`))[member];
      return typeof name === 'string' && !/[${}]/.test(name) && (await findId(client, kind, name)) === id
        ? name
        : undefined;
    } catch (error) {
      if (error instanceof UsageError || (error instanceof ApiError && error.status === 404)) return undefined;
      throw error;
    }
  };
  return (kind, id) => {
    const name = found.get(id) ?? look(kind, id);
    found.set(id, name);
    return name;
  };
}

async function exportConfigs(session: Session, root: string): Promise<number> {
  const configs: string[] = [];
  for await (const entry of listAll(session.client, '/config')) configs.push(String(entry.virtual_path));
  const folders = new Set(configs.flatMap((path) => path.split('/').map((_, at, all) => all.slice(0, at).join('/'))));
  let files = 0;
  for (const path of configs) {
    if (path.startsWith(recordFolder)) continue;
    if (folders.has(path)) {
      session.say(`Left out config ${path}: other entries are below it, and a file cannot be a directory`);
      continue;
    }
    const { content } = await session.client.send<{ content: string }>('GET', `/config/${configPath(path)}`);
    write(join(root, 'configs', path), content);
    files += 1;
  }
  return files;
}

function write(path: string, text: string): void {
  createDirectories(dirname(path));
  writeFileSync(path, text, { flag: 'wx' });
}

/** A name for the file of a key. Two keys never get the same one. */
function nameFile(key: string, taken: Set<string>): string {
  const plain =
    key
      .replace(/^https?:\/\//, '')
      .replace(/[^A-Za-z0-9._-]+/g, '-')
      .replace(/^[.-]+|[.-]+$/g, '') || 'one';
  let name = plain.slice(0, 100).toLowerCase();
  for (let next = 2; taken.has(name); next++) name = `${plain.slice(0, 100).toLowerCase()}-${next}`;
  taken.add(name);
  return `${name}.yaml`;
}
