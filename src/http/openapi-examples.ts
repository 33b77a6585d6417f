import { readFileSync } from 'node:fs';

/** A body, and the responses by status. */
type Exchange = { request?: unknown; responses?: Record<string, unknown> };

/** Parameters of the path, an exchange, and others by their names. */
export type OperationExample = Exchange & {
  path?: Record<string, unknown>;
  variants?: Record<string, Exchange & { summary: string }>;
};

/** The examples by operation. test/api/reference-examples.test.ts records them from requests to a server. */
export function readExamples(): Record<string, OperationExample> {
  // Read when the document is requested, so that an idle server does not hold it.
  return JSON.parse(readFileSync(new URL('./openapi-examples.json', import.meta.url), 'utf8'));
}
