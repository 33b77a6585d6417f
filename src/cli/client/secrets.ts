import { readSecret } from './actions.ts';
import { jsonLine, type Session } from './session.ts';

/** `quarry secrets set <name>`: stores the first line of a file or of standard input. */
export async function set(session: Session, name: string, { from = '-' }: { from?: string }): Promise<number> {
  const path = `/secrets/${encodeURIComponent(name)}`;
  const secret = await session.client.send<object>('PUT', path, { body: { value: await readSecret(from) } });
  if (session.json) await session.print(jsonLine(secret));
  return 0;
}
