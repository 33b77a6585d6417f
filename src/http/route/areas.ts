import type { KeyArea } from '../../tenancy/key-scopes.ts';

/** The area of each tag. Requests of MCP tools are checked one by one. */
const areas: Record<string, KeyArea | undefined> = {
  Files: 'files',
  Extractions: 'extractions',
  Config: 'extractions',
  ...{ Knowledge: 'knowledge', Threads: 'knowledge', Installations: 'knowledge', Answers: 'knowledge' },
  Automations: 'automations',
  'Key-value storage': 'kv',
  Webhooks: 'webhooks',
  ...{
    Organisations: 'people',
    Users: 'people',
    Teams: 'people',
    Erasures: 'app',
    Groups: 'people',
    Agents: 'people',
    'Sign-in': 'people',
  },
  Models: 'app',
  ...{ Apps: 'app', Jobs: 'app', Audit: 'app' },
  Server: undefined,
};

/** The area for keys with scopes of the operations with this tag; undefined where any key is allowed. */
export function areaOf(tag: string): KeyArea | undefined {
  if (!(tag in areas)) throw new Error(`Add an area of key scopes for the tag "${tag}".`);
  return areas[tag];
}
