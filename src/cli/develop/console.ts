import { jsonLine, type Session } from '../client/session.ts';

type Link = { url: string; expires_at: string };

/** `quarry console`: prints a link that signs the developer in to the web console, once, within ten minutes. */
export async function printSignInLink(session: Session): Promise<number> {
  const link = await session.client.send<Link>('POST', '/protected/api/v1/developer/sign_in_links');
  await session.print(session.json ? jsonLine(link) : `${link.url}\n`);
  if (!session.json) session.say(`It works once, until ${link.expires_at}.`);
  return 0;
}
