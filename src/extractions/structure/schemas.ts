import { invalidField } from '../../lib/errors.ts';
import { findShapeProblem, type JsonObject } from './schema-shape.ts';

type Problem = { path: string; message: string };

/** Checks JSON Schemas of tenants in threads with a deadline, because their patterns may run forever. */
export type SchemaChecker = {
  check(lane: string, schema: unknown, value: unknown): Promise<Problem[]>;
  /** Whether `check` threw because of the schema and not because of the server. */
  isRefusal(error: unknown): error is Error;
};

const problemsShownMax = 20;
const problemCharactersMax = 2_000;

export type Schemas = ReturnType<typeof createSchemas>;

export function createSchemas({ check, isRefusal }: SchemaChecker) {
  return {
    isRefusal,

    /** 422 on `schema` unless it is a JSON Schema that may be used. */
    async requireUsable(lane: string, schema: JsonObject): Promise<void> {
      const problem = findShapeProblem(schema);
      if (problem !== undefined) throw invalidField('schema', problem);
      try {
        await check(lane, schema, null);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        throw invalidField('schema', `is not a valid JSON Schema. ${error.message}`);
      }
    },

    /** How the value violates the schema, or undefined if it does not. */
    async findProblems(lane: string, schema: JsonObject, value: unknown) {
      const problems = await check(lane, schema, value);
      if (problems.length === 0) return undefined;
      const shown = problems.slice(0, problemsShownMax).map(({ path, message }) => `${path || '/'} ${message}`);
      return { paths: problems.map(({ path }) => path), text: shown.join('; ').slice(0, problemCharactersMax) };
    },
  };
}
