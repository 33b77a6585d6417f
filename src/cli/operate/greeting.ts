import { isLoopback } from '../../config/loopback.ts';

/** What `quarry serve` prints when it is ready. */
export function formatGreeting(shown: {
  url: string;
  baseUrl: string;
  credentials: string | undefined;
  /** A link that signs in. */
  signInUrl: string | undefined;
}): string {
  const { url, baseUrl, credentials, signInUrl } = shown;
  return [
    `Quarry listens on ${url}`,
    `Console            ${baseUrl}/console`,
    ...(signInUrl === undefined ? [] : [`Sign in            ${signInUrl} (works once, for ten minutes)`]),
    `API reference      ${baseUrl}/docs/api`,
    `Credentials        ${credentials ?? 'create new ones with `quarry credentials`'}`,
    '',
  ].join('\n');
}

/** Whether to print a link that signs in: only at a terminal, and only if no other machine can use it. */
export function maySignInByLink(process: { isTerminal: boolean; host: string; baseUrl: string }): boolean {
  return process.isTerminal && isLoopback(process.host) && isLoopback(new URL(process.baseUrl).hostname);
}
