import assert from 'node:assert/strict';
import { Directory } from '../../../src/cells/move/directory.ts';
import { newUuid, parseId } from '../../../src/lib/ids.ts';
import { digest, generateCredential } from '../../../src/tenancy/secrets.ts';
import type { startTwoCells } from '../cells.ts';

type TwoCells = Awaited<ReturnType<typeof startTwoCells>>;

/** An app of a developer in one of the cells, with its keys. */
export type App = { id: string; uuid: string; secret: string; publishable: string; cell: string };

const developerApps = '/protected/api/v1/developer/apps';

/** Adds a developer to the directory. Returns the token. */
export async function addDeveloper({ first }: TwoCells): Promise<string> {
  const developerId = newUuid();
  const token = generateCredential('dvt');
  await first.db`insert into developers (id, name) values (${developerId}, 'Ada')`;
  await first.db`insert into developer_tokens (digest, id, developer_id)
    values (${digest(token)}, ${newUuid()}, ${developerId})`;
  return token;
}

export async function createApp({ api, first }: TwoCells, token: string, name: string): Promise<App> {
  const created = await api<{ id: string }>('POST', developerApps, { token, body: { name } });
  assert.equal(created.status, 201, created.text);
  const { id } = created.body;
  const uuid = parseId('app', id) ?? '';
  const [place] = await first.db<{ cell: string }[]>`select cell from cell_apps where app_id = ${uuid}`;
  const key = async (type: string) => {
    const path = `${developerApps}/${id}/keys`;
    const { body } = await api<{ full_key: string }>('POST', path, { token, body: { type } });
    return body.full_key;
  };
  return { id, uuid, cell: place?.cell ?? '', secret: await key('secret'), publishable: await key('publishable') };
}

/** The directory as a move sees it. */
export function directoryOf({ first, second }: TwoCells): Directory {
  return new Directory(first.target, [
    { name: 'eu1', target: first.target, acceptsNewApps: true },
    { name: 'eu2', target: second.target, acceptsNewApps: true },
  ]);
}
