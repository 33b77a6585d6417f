import type { TObject } from 'typebox';
import { checkAutomation, checkMembers, type ValueProblem } from '../../automations/definitions/source-file.ts';
import { automationCreateSchema } from '../../automations/schema.ts';
import { strict } from '../../http/route/route.ts';
import { issuerCreateSchema } from '../../identity/schema.ts';
import { sourceCreateSchema } from '../../knowledge/schema.ts';
import { orgCreateSchema } from '../../orgs/schema.ts';
import { webhookCreateSchema } from '../../webhooks/schema.ts';
import type { NamedKind } from '../client/names.ts';

export type Values = Record<string, unknown>;
type ResourceName = 'org' | 'source' | 'automation' | 'webhook' | 'issuer';

/** How files describe one kind of resource: the body of the request that creates it, and its status. */
export type Kind = {
  name: ResourceName;
  folder: string;
  path: string;
  /** The member that identifies it in files and on the server. */
  key: 'lookup_key' | 'issuer' | 'slug';
  /** The values of members that a file leaves out. */
  defaults: Values;
  /** Members that are set when it is created. */
  fixed: readonly string[];
  /** Members that name another resource. */
  names: Record<string, NamedKind>;
  /** The owners, the first of which decides. */
  owners: readonly string[];
  /** `status` of a file, which is changed by requests of its own: the value and the request for it. */
  status?: { initial: string; requests: Record<string, string> };
  /** Whether `--prune` leaves it: deleting it would delete what its users own. */
  isKept?: boolean;
  check(values: Values): ValueProblem[];
};

const owners = ['agent', 'team', 'user', 'org'] as const;

/** A logo is not in files. */
const { slug, name } = orgCreateSchema.properties;
const orgFileSchema = strict({ slug, name });

export const kinds: readonly Kind[] = [
  {
    name: 'org',
    folder: 'orgs',
    path: '/orgs',
    key: 'slug',
    defaults: {},
    fixed: [],
    names: {},
    owners: [],
    isKept: true,
    check: (values) => checkMembers(orgFileSchema, values),
  },
  {
    name: 'source',
    folder: 'sources',
    path: '/knowledge_sources',
    key: 'lookup_key',
    defaults: { payload: {}, metadata: {}, state: 'active' },
    fixed: ['type', ...owners, 'thread', 'parent_source'],
    names: { agent: 'agent', team: 'team', user: 'user', org: 'org', thread: 'thread', parent_source: 'source' },
    owners,
    check: (values) => [...checkMembers(sourceCreateSchema, values), ...checkOwner(values)],
  },
  {
    name: 'automation',
    folder: 'automations',
    path: '/automations',
    key: 'lookup_key',
    defaults: {
      ...{ description: null, trigger: null, filter: null, schedule: null, timezone: 'UTC', workflow: null },
      ...{ input_schema: null, invoke_auth: 'any', run_as_user: null, run_as_agent: null, max_concurrent_runs: null },
      ...{
        max_pending_runs: null,
        concurrency: null,
        rate: null,
        timeout_seconds: null,
        retention: null,
        metadata: {},
      },
    },
    fixed: ['type', 'team', 'user', 'org'],
    names: { team: 'team', user: 'user', org: 'org', run_as_user: 'user', run_as_agent: 'agent' },
    owners: ['team', 'user', 'org'],
    status: { initial: 'paused', requests: { running: 'activate', paused: 'pause' } },
    check: checkAutomation,
  },
  {
    name: 'webhook',
    folder: 'webhooks',
    path: '/webhooks',
    key: 'lookup_key',
    defaults: { description: null },
    fixed: [],
    names: {},
    owners: [],
    status: { initial: 'active', requests: { active: 'resume', paused: 'pause' } },
    check: (values) => checkMembers(webhookCreateSchema, values),
  },
  {
    name: 'issuer',
    folder: 'issuers',
    path: '/identity_issuers',
    key: 'issuer',
    defaults: { jwks_url: null, create_users: false, link_by_email: false, claims: {}, console: null },
    fixed: [],
    names: {},
    owners: [],
    check: (values) => checkMembers(issuerCreateSchema, values),
  },
];

/** The members that a file may have, except `status`. */
function membersOf({ name }: Kind): string[] {
  return Object.keys((schemas[name] as TObject).properties);
}

const schemas: Record<ResourceName, unknown> = {
  org: orgFileSchema,
  source: sourceCreateSchema,
  automation: automationCreateSchema,
  webhook: webhookCreateSchema,
  issuer: issuerCreateSchema,
};

/** The member whose value the API never returns. */
export const writeOnly = { kind: 'issuer', path: ['console', 'client_secret'] } as const;

function checkOwner(values: Values): ValueProblem[] {
  const named = owners.filter((owner) => values[owner] !== undefined);
  if (named.length === 1) return [];
  const path = named[1] === undefined ? [] : [named[1]];
  return [{ path, message: `exactly one of ${owners.join(', ')} owns a source` }];
}

/** What the file of a resource would say: its members, without those that are absent or null. */
export function valuesOf(kind: Kind, resource: Values): Values {
  const values: Values = {};
  const owner = kind.owners.find((name) => typeof resource[name] === 'string');
  for (const member of membersOf(kind)) {
    const value = resource[member];
    if (value === null || value === undefined || (kind.owners.includes(member) && member !== owner)) continue;
    values[member] = value;
  }
  if (kind.status) values.status = String(resource.status) === 'draft' ? 'paused' : resource.status;
  return values;
}

/** The same values with those that a file leaves out. */
export function withDefaults(kind: Kind, values: Values): Values {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  const status = kind.status && { status: Object.keys(kind.status.requests)[0] };
  return { ...kind.defaults, ...status, ...Object.fromEntries(given) };
}
