import { readFileSync } from 'node:fs';

/** A request body, and response bodies by status. */
type Exchange = { request?: unknown; responses?: Record<string, unknown> };

/** Path parameters, an exchange, and further exchanges by name. */
export type OperationExample = Exchange & {
  path?: Record<string, unknown>;
  variants?: Record<string, Exchange & { summary: string }>;
};

/** Reads the examples by operation. test/api/http/reference-examples.test.ts records them from requests to a server. */
export function readExamples(): Record<string, OperationExample> {
  // Reads the file when the document is requested, so that an idle server does not hold it in memory.
  return JSON.parse(readFileSync(new URL('./examples.json', import.meta.url), 'utf8'));
}
