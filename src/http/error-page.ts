import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '../lib/errors.ts';

/** Whether a person will see the response in a browser. */
export function isForPerson({ headers }: FastifyRequest): boolean {
  return /\btext\/html\b/.test(headers.accept ?? '');
}

/** A text for an element or an attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Sends an error as a page. `title` and `rest` are HTML. */
export function sendErrorPage(
  reply: FastifyReply,
  { status, message }: Pick<AppError, 'status' | 'message'>,
  { title, rest = '' }: { title: string; rest?: string },
): FastifyReply {
  const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>${title} · Quarry</title>
    <style>body { margin: 15vh auto; padding: 0 1rem; max-width: 30rem; font: 1rem/1.5 sans-serif; color: #1f2733 } a { color: #0f6b5c }</style>
  </head>
  <body>
    <h1>${title}</h1>
    <p>${escapeHtml(message)}</p>${rest}
  </body>
</html>
`;
  return reply
    .code(status)
    .headers({ 'cache-control': 'no-store', 'content-security-policy': pagePolicy })
    .type('text/html; charset=utf-8')
    .send(page);
}

const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
