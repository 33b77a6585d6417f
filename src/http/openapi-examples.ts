import { readFileSync } from 'node:fs';

/** Parameters of the path, the body, and the responses by status. */
export type OperationExample = {
  path?: Record<string, unknown>;
  request?: unknown;
  responses?: Record<string, unknown>;
};

/** The examples by operation. test/api/reference-examples.test.ts records them from requests to a server. */
export function readExamples(): Record<string, OperationExample> {
  // Read when the document is asked for: an idle server does without.
  return JSON.parse(readFileSync(new URL('./openapi-examples.json', import.meta.url), 'utf8'));
}
