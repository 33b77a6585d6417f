import { parseDocument, stringify } from 'yaml';
import type { Automation } from '../../api/generated.ts';

/** The language in which a definition is written. */
export type Language = 'yaml' | 'json';

const editable = [
  ...['name', 'lookup_key', 'description', 'type', 'trigger', 'filter', 'schedule', 'timezone', 'input_schema'],
  ...[
    'invoke_auth',
    'run_as_user',
    'run_as_agent',
    'max_concurrent_runs',
    'max_pending_runs',
    'concurrency',
    'rate',
    'timeout_seconds',
    'retention',
    'metadata',
    'workflow',
  ],
] as (keyof Automation)[];

/** The definition of an automation as text: everything that can be set. */
export function writeDefinition(automation: Automation, language: Language): string {
  const known = editable.filter((name) => {
    const value = automation[name];
    return value !== undefined && value !== null && (name !== 'metadata' || JSON.stringify(value) !== '{}');
  });
  return writeText(Object.fromEntries(known.map((name) => [name, automation[name]])), language);
}

export function writeText(value: unknown, language: Language): string {
  return language === 'json' ? `${JSON.stringify(value, null, 2)}\n` : stringify(value, { lineWidth: 100 });
}

/** Parses a definition, as YAML or JSON. Throws for any other text. */
export function readDefinition(text: string): Record<string, unknown> {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error) throw new Error(error.message);
  const value: unknown = document.toJS();
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('This must be an object with a name, a type and a workflow.');
  return value as Record<string, unknown>;
}
