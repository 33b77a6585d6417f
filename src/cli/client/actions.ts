import { looksLikeId } from '../../lib/ids.ts';
import { UsageError } from '../errors.ts';
import type { Action, ActionOption } from './action-kinds.ts';
import { findLocalFile, readAll } from './local-file.ts';
import { findId, findOwners, isNamedKind } from './names.ts';
import { readData, reportNextPage } from './resources.ts';
import { jsonLine, type Session } from './session.ts';
import { formatMembers, formatTable, lookOfOutput } from './table.ts';

type Found = Record<string, unknown> & { data?: Record<string, unknown>[]; page?: number; total_pages?: number };
/** The values of options, by the member that each sets. */
export type ActionValues = Record<string, string | number | undefined>;

/** Sends the request of a command and prints the response. `words` are the arguments, by their names. */
export async function runAction(
  session: Session,
  action: Action,
  words: Record<string, string>,
  values: ActionValues,
): Promise<number> {
  const [method = '', pattern = ''] = action.request.split(' ');
  const { path, rest } = await resolvePath(session, pattern, words);
  const members = { ...rest, ...(await readOptions(session, action.options ?? [], values)) };
  const found = await session.client.send<Found | undefined>(method as 'GET', path, {
    ...(method === 'GET' ? { query: { ...members, page: values.page, page_size: values.limit } as never } : {}),
    ...(method === 'GET' || !takesBody(action, words) ? {} : { body: members }),
  });
  await print(session, action, found);
  return 0;
}

/** Whether an argument or option can be a member of the body. Such a request has a body even if it is empty. */
function takesBody({ request, options = [] }: Action, words: Record<string, string>): boolean {
  return options.length > 0 || Object.keys(words).some((word) => !request.includes(`:${word}`));
}

/** Replaces the arguments in the path by ids. `rest` are the arguments that the path does not name. */
async function resolvePath({ client }: Session, pattern: string, words: Record<string, string>) {
  const rest = { ...words };
  let path = '';
  for (const part of pattern.split('/').slice(1)) {
    const word = part.slice(1);
    const given = part.startsWith(':') ? rest[word] : undefined;
    if (given === undefined) {
      path += `/${part}`;
      continue;
    }
    delete rest[word];
    const id = isNamedKind(word)
      ? await findId(client, word, given, isWithin(word) ? path.replace(/\/\w+$/, '') : '')
      : given;
    if (idsOnly.has(word) && !looksLikeId(id)) throw new UsageError(`"${given}" is not an id.`);
    path += `/${word === 'path' ? id.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(id)}`;
  }
  return { path, rest };
}

const idsOnly = new Set(['delivery', 'run']);
const isWithin = (word: string) => word === 'member' || word === 'token';

const secretBytesMax = 1_024;

async function readOptions(session: Session, options: readonly ActionOption[], values: ActionValues) {
  const members: Record<string, unknown> = {};
  for (const { member, flags, reads } of options) {
    const value = values[member];
    if (value === undefined) continue;
    const text = String(value);
    if (reads === 'json') members[member] = await readData(text, flags.split(' ')[0]);
    else if (reads === 'secret') members[member] = await readSecret(text);
    else if (reads === 'user') members[member] = await findId(session.client, 'user', text);
    else members[member] = value;
  }
  return findOwners(session.client, members);
}

/** Reads a secret from the first line of a file or of standard input: other users of the machine can read a command line. */
export async function readSecret(path: string): Promise<string> {
  const text = (await readAll(await findLocalFile(path), secretBytesMax)).toString('utf8');
  return text.split('\n', 1)[0]?.trim() ?? '';
}

async function print(session: Session, { columns, paged, prints, says }: Action, found: Found | undefined) {
  if (found !== undefined && session.json) await session.print(jsonLine(found));
  else if (found !== undefined && columns !== undefined) {
    const rows = found.data ?? [];
    if (rows.length > 0) await session.print(formatTable(rows, columns, lookOfOutput()));
    else session.say('None.');
  } else if (found !== undefined && prints !== undefined) {
    const value = found[prints];
    const text = typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
    await session.print(text.endsWith('\n') ? text : `${text}\n`);
  } else if (found !== undefined) await session.print(formatMembers(found, lookOfOutput()));
  if (paged && found !== undefined) reportNextPage(session, found);
  if (says !== undefined && !session.json) session.say(says);
}
