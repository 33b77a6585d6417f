import { looksLikeId } from '../../lib/ids.ts';
import { ApiError, UsageError } from '../errors.ts';
import { readJsonObject } from './ingest.ts';
import { findLocalFile, readAll } from './local-file.ts';
import { findId, findOwners } from './names.ts';
import { confirm } from './prompt.ts';
import type { Owner, Resource } from './resource-kinds.ts';
import { jsonLine, type Session } from './session.ts';
import { formatMembers, formatTable, lookOfOutput } from './table.ts';

type Thing = Record<string, unknown> & { id: string; warnings?: { message: string }[] };
export type ListOptions = { search?: string; page?: number; limit?: number } & Partial<Record<Owner, string>>;
export type CreateOptions = { set?: string[]; data?: string } & Partial<Record<Owner, string>>;

/** `quarry <kind> list`. */
export async function list(session: Session, resource: Resource, options: ListOptions): Promise<number> {
  const { search, page, limit, ...rest } = options;
  const owners = pick(await findOwners(session.client, rest), resource.filters);
  const found = await session.client.send<{ data: Thing[]; page: number; total_pages: number }>('GET', resource.path, {
    query: {
      ...owners,
      ...(resource.search === undefined ? {} : { [resource.search]: search }),
      page,
      page_size: limit,
    },
  });
  if (session.json) await session.print(jsonLine(found));
  else if (found.data.length > 0) await session.print(formatTable(found.data, resource.columns, lookOfOutput()));
  else session.say('None.');
  reportNextPage(session, found);
  return 0;
}

/** Says on standard error that a list has more pages. */
export function reportNextPage(
  session: Session,
  { page = 1, total_pages: pages = 1 }: { page?: number; total_pages?: number },
) {
  if (page < pages) session.say(`Page ${page} of ${pages}: see the next with --page ${page + 1}.`);
}

/** `quarry <kind> get <name>`. */
export async function get(session: Session, resource: Resource, named: string): Promise<number> {
  const thing = await session.client.send<Thing>('GET', await pathOf(session, resource, named));
  await session.print(session.json ? jsonLine(thing) : formatMembers(thing, lookOfOutput()));
  return 0;
}

/** `quarry <kind> create <argument>`: members come from the argument, the owner, `--set` and `--data`. */
export async function create(
  session: Session,
  { path, create: how }: Resource,
  argument: string,
  options: CreateOptions,
): Promise<number> {
  if (how === undefined) throw new Error('It cannot be created.');
  const { member, owners, defaults } = how;
  const body = {
    ...defaults,
    ...(options.data === undefined ? {} : await readData(options.data)),
    ...(await findOwners(session.client, Object.fromEntries((options.set ?? []).map(readMember)))),
    ...pick(await findOwners(session.client, options), owners),
    [member]: argument,
  };
  const thing = await session.client.send<Thing>('POST', path, { body }).catch((error: unknown) => {
    throw namesOptions(error, owners);
  });
  await session.print(session.json ? jsonLine(thing) : `${thing.id}\n`);
  if (!session.json && typeof thing.secret === 'string')
    session.say(`Its secret, which is not shown again: ${thing.secret}`);
  reportWarnings(session, thing);
  return 0;
}

/** Adds the options that set them to an error about members. */
function namesOptions(error: unknown, owners: readonly Owner[]): unknown {
  if (!(error instanceof ApiError)) return error;
  const refused = owners.filter((owner) => error.fields.some(({ field }) => field === owner));
  if (refused.length === 0) return error;
  const { status, isSent, fields } = error;
  const options = refused.map((owner) => `--${owner}`).join(', ');
  return new ApiError(status, `${error.message}\nSet by: ${options}.`, { isSent, fields });
}

/** Says on standard error what in the request looks like a mistake. */
function reportWarnings(session: Session, { warnings }: { warnings?: { message: string }[] }): void {
  for (const { message } of warnings ?? []) session.say(`Warning: ${message}`);
}

/** `quarry <kind> update <name>`: sends the members of `--set` and `--data`. */
export async function update(
  session: Session,
  resource: Resource,
  named: string,
  { set = [], data }: Pick<CreateOptions, 'set' | 'data'>,
): Promise<number> {
  const body = {
    ...(data === undefined ? {} : await readData(data)),
    ...(await findOwners(session.client, Object.fromEntries(set.map(readMember)))),
  };
  if (Object.keys(body).length === 0) throw new UsageError('Nothing to change. Pass --set name=value or --data.');
  const thing = await session.client.send<Thing>('PATCH', await pathOf(session, resource, named), { body });
  await session.print(session.json ? jsonLine(thing) : formatMembers(thing, lookOfOutput()));
  reportWarnings(session, thing);
  return 0;
}

/** `quarry <kind> delete <name…>`: every name is resolved before the first is deleted. */
export async function remove(
  session: Session,
  resource: Resource,
  { kind, names, yes }: { kind: string; names: string[]; yes: boolean | undefined },
): Promise<number> {
  const paths: string[] = [];
  for (const named of names) paths.push(await pathOf(session, resource, named));
  await confirm(`Delete ${kind} ${names.join(', ')}, and everything that belongs to them?`, yes);
  for (const path of paths) {
    await session.client.send('DELETE', path);
    session.say(`Deleted ${path.slice(resource.path.length + 1)}.`);
  }
  return 0;
}

async function pathOf({ client }: Session, { path, named: kind }: Resource, named: string): Promise<string> {
  if (kind === undefined && !looksLikeId(named)) throw new UsageError(`"${named}" is not an id.`);
  const id = kind === undefined ? named : await findId(client, kind, named);
  return `${path}/${encodeURIComponent(id)}`;
}

function pick(options: object, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).filter(([name, value]) => names.includes(name) && value !== undefined),
  );
}

/** `name=value`: the value is JSON where it can be read as JSON, otherwise text. */
function readMember(given: string): [string, unknown] {
  const at = given.indexOf('=');
  if (at < 1) throw new UsageError(`--set takes name=value, not "${given}".`);
  const text = given.slice(at + 1);
  try {
    return [given.slice(0, at), JSON.parse(text)];
  } catch {
    return [given.slice(0, at), text];
  }
}

const dataBytesMax = 16 * 1024 * 1024;

/** A JSON object, `@file`, or `-` for standard input. */
export async function readData(given: string, option = '--data'): Promise<Record<string, unknown>> {
  if (given === '') throw new UsageError(`${option} is empty.`);
  if (given !== '-' && !given.startsWith('@')) return readJsonObject(option, given);
  const file = await findLocalFile(given === '-' ? '-' : given.slice(1));
  return readJsonObject(option, (await readAll(file, dataBytesMax)).toString('utf8'));
}
