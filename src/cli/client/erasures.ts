import { setTimeout as sleep } from 'node:timers/promises';
import { UsageError } from '../errors.ts';
import { receive, writeWhole } from './download.ts';
import { findId } from './names.ts';
import { confirm } from './prompt.ts';
import type { Session } from './session.ts';

export type EraseOptions = {
  user?: string;
  document?: string;
  source?: string;
  files?: boolean;
  out?: string;
  yes?: boolean;
};

type Erasure = { id: string; status: 'running' | 'done'; removed: Record<string, number> };

const subjects = ['user', 'document', 'source'] as const;
const pauseMs = 500;

/** `quarry erase`: orders an erasure, waits until it is done, and prints its certificate or writes it to a new file. */
export async function erase(session: Session, options: EraseOptions): Promise<number> {
  const { client, progress, signal } = session;
  const named = subjects.filter((kind) => options[kind] !== undefined);
  const [kind] = named;
  if (kind === undefined || named.length > 1)
    throw new UsageError('Pass exactly one of --user, --document and --source.');
  const id = await findId(client, kind, options[kind] ?? '');
  await confirm(`Erase the ${kind} ${id} and everything that is stored under it? This cannot be undone.`, options.yes);
  const body = { [kind]: id, ...(options.files ? { files: true } : {}) };
  let erasure = await client.send<Erasure>('POST', '/erasures', { body });
  const path = `/erasures/${erasure.id}`;
  session.onInterrupt(`The erasure continues on the server. When it is done, ${path}/certificate has its certificate.`);
  while (erasure.status !== 'done') {
    const rows = Object.values(erasure.removed).reduce((sum, count) => sum + count, 0);
    progress.show(`${erasure.id} running, ${rows} rows deleted`);
    await sleep(pauseMs, undefined, { signal });
    erasure = await client.send<Erasure>('GET', path);
  }
  const certificate = await client.send<object>('GET', `${path}/certificate`);
  const text = `${JSON.stringify(certificate, null, session.json ? undefined : 2)}\n`;
  if (options.out === undefined) await session.print(text);
  else await writeWhole(options.out, [Buffer.from(text)]);
  session.say(`${erasure.id} done${options.out === undefined ? '' : `, certificate in ${options.out}`}`);
  return 0;
}

/** `quarry users export <user>`: writes everything about a user to a new file, or to standard output. */
export async function exportUser(session: Session, named: string, { out }: { out?: string }): Promise<number> {
  const { client } = session;
  const id = await findId(client, 'user', named);
  const archive = await client.readBytes(`/users/${encodeURIComponent(id)}/export`);
  await receive(session, id, archive, { path: out ?? `${id}.zip` });
  return 0;
}
