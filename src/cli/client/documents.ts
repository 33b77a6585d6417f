import { findId } from './names.ts';
import { jsonLine, type Session } from './session.ts';

type Content = { content: string; total_lines: number; end_line?: number };

const linesPerRequest = 2_000;

/** `quarry documents read <document>`: prints its text, which is requested in parts. */
export async function read(session: Session, named: string): Promise<number> {
  const path = `/knowledge_documents/${encodeURIComponent(await findId(session.client, 'document', named))}/content`;
  for (let offset = 1; ; ) {
    const part = await session.client.send<Content>('GET', path, {
      query: { unit: 'lines', offset, limit: linesPerRequest },
    });
    await session.print(session.json ? jsonLine(part) : part.content);
    const end = part.end_line ?? 0;
    if (end < offset || end >= part.total_lines) return 0;
    offset = end + 1;
  }
}
