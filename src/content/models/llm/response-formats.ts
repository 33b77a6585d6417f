import { hash } from 'node:crypto';

/** The constraint on the output that a request asks the server for. */
export type ResponseFormat = 'json_schema' | 'json_object' | 'none';

/** How long a refusal is cached. The server may be replaced by another one. */
const refusalMsMax = 10 * 60_000;
const schemasMax = 500;

/**
 * Which response formats the server accepts, as far as this process knows. If a server that has accepted a schema
 * refuses another one, the refusal counts only for that schema, so that one tenant's schema does not cost the others
 * the constraint.
 */
export class ResponseFormats {
  #acceptsSchemas = false;
  /** When each cached refusal expires: by format, or by the digest of a schema. */
  readonly #refusedUntil = new Map<string, number>();

  choose(schema: unknown): ResponseFormat {
    if (!this.#isRefused('json_schema') && !this.#isRefused(digestOf(schema))) return 'json_schema';
    return this.#isRefused('json_object') ? 'none' : 'json_object';
  }

  noteAccepted(format: ResponseFormat): void {
    if (format === 'json_schema') this.#acceptsSchemas = true;
  }

  /** @param reason what the server said */
  noteRefused(format: ResponseFormat, schema: unknown, reason: string): void {
    if (format === 'json_schema') this.#refuse(this.#acceptsSchemas ? digestOf(schema) : 'json_schema');
    if (format === 'json_object' || knowsNoFormats(reason)) this.#refuse('json_object');
  }

  #refuse(what: string): void {
    if (this.#refusedUntil.size >= schemasMax) this.#refusedUntil.clear();
    this.#refusedUntil.set(what, performance.now() + refusalMsMax);
  }

  #isRefused(what: string): boolean {
    return (this.#refusedUntil.get(what) ?? 0) > performance.now();
  }
}

/** Whether the server refuses the member itself, whatever its type or schema. */
function knowsNoFormats(reason: string): boolean {
  return /unknown|unrecogni[sz]ed|unexpected|not permitted/i.test(reason) && !/type|json|schema/i.test(reason);
}

function digestOf(schema: unknown): string {
  return hash('sha256', JSON.stringify(schema), 'base64');
}
