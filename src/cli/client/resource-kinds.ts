import type { NamedKind } from './names.ts';

export type Owner = 'user' | 'org' | 'team' | 'agent' | 'source';
export type Verb = 'list' | 'get' | 'create' | 'update' | 'delete';

/** Describes one kind of resource to its commands. */
export type Resource = {
  path: string;
  /** Absent if resources of this kind have only an id. */
  named?: NamedKind;
  columns: readonly string[];
  /** The parameter that searches the list. */
  search?: 'search' | 'q';
  filters: readonly Owner[];
  /** Verbs that the API does not offer, or that another command handles. */
  without?: readonly Verb[];
  /** The member that `create` takes as its argument, and the members that it adds. */
  create?: {
    member: string;
    about?: string;
    example: string;
    second?: string;
    owners: readonly Owner[];
    defaults?: Record<string, unknown>;
  };
};

export const resources: Record<string, Resource> = {
  sources: {
    path: '/knowledge_sources',
    named: 'source',
    columns: ['id', 'type', 'lookup_key', 'metadata.name', 'state', 'updated_at', 'payload.url'],
    filters: ['org', 'agent'],
    create: {
      member: 'type',
      about: 'the types are those of `quarry sources kinds`',
      example: `knowledge/documents --org "My org" --set metadata='{"name": "Handbook"}'`,
      second: `scrape/site --user ada@example.com --set payload='{"url": "https://example.com/docs/"}'`,
      owners: ['user', 'org', 'team', 'agent'],
    },
  },
  users: {
    path: '/users',
    named: 'user',
    columns: ['id', 'email', 'name', 'org_name', 'org_role', 'created_at'],
    search: 'search',
    filters: ['org'],
    create: { member: 'email', example: 'ada@example.com --org "My org" --set name=Ada', owners: ['org'] },
  },
  orgs: {
    path: '/orgs',
    named: 'org',
    columns: ['id', 'name', 'slug', 'created_at'],
    search: 'search',
    filters: [],
    create: { member: 'name', example: '"My org" --set slug=my-org', owners: [] },
  },
  teams: {
    path: '/teams',
    named: 'team',
    columns: ['id', 'name', 'org', 'created_at'],
    search: 'search',
    filters: [],
    create: { member: 'name', example: 'Support --org "My org"', owners: ['org'] },
  },
  agents: {
    path: '/agents',
    named: 'agent',
    columns: ['id', 'name', 'lookup_key', 'org', 'created_at'],
    search: 'search',
    filters: ['user', 'org'],
    create: {
      member: 'name',
      example: 'Helper --org "My org" --set lookup_key=helper',
      owners: ['user', 'org', 'team'],
    },
  },
  files: {
    path: '/files',
    named: 'file',
    columns: ['id', 'filename', 'content_type', 'size', 'created_at'],
    search: 'search',
    filters: ['user', 'org', 'team', 'agent'],
    create: { member: 'file', example: 'report.pdf --org "My org"', owners: ['user', 'org', 'team', 'agent'] },
  },
  uploads: {
    path: '/uploads',
    named: 'upload',
    columns: ['id', 'filename', 'offset', 'length', 'expires_at'],
    filters: [],
    without: ['create', 'update'],
  },
  automations: {
    path: '/automations',
    named: 'automation',
    columns: ['id', 'name', 'lookup_key', 'type', 'status', 'updated_at'],
    filters: [],
    create: { member: 'name', example: 'Greet --data @greet.json', owners: ['user', 'org', 'team'] },
  },
  extractions: {
    path: '/extractions',
    columns: ['id', 'state', 'kind', 'url', 'output_count', 'created_at'],
    without: ['update'],
    filters: ['agent'],
    create: {
      member: 'url',
      example: 'https://example.com/docs/ --set mode=site --set max_pages=50',
      owners: ['org', 'agent'],
      defaults: { mode: 'link', destination_kind: 'storage' },
    },
  },
  documents: {
    path: '/knowledge_documents',
    named: 'document',
    columns: ['id', 'title', 'source', 'total_size', 'updated_at'],
    search: 'q',
    filters: ['source', 'agent'],
    without: ['create'],
  },
  apps: {
    path: '/protected/api/v1/developer/apps',
    named: 'app',
    columns: ['id', 'name', 'created_at'],
    filters: [],
    without: ['delete'],
    create: { member: 'name', example: 'Shop', owners: [] },
  },
  threads: {
    path: '/threads',
    named: 'thread',
    columns: ['id', 'title', 'agent', 'user', 'created_at'],
    filters: ['user', 'agent'],
    create: { member: 'title', example: '"Night watch" --agent Helper', owners: ['user', 'org', 'team', 'agent'] },
  },
  installations: {
    path: '/installations',
    columns: ['id', 'kind', 'agent', 'state', 'created_at'],
    without: ['update'],
    filters: ['agent'],
    create: { member: 'kind', example: 'webhook/inbound --agent Helper', owners: ['agent'] },
  },
  sandboxes: {
    path: '/sandboxes',
    named: 'sandbox',
    columns: ['id', 'name', 'created_at'],
    filters: [],
    create: { member: 'name', example: 'Rehearsal', owners: [] },
  },
  webhooks: {
    path: '/webhooks',
    named: 'webhook',
    columns: ['id', 'lookup_key', 'url', 'status', 'created_at'],
    filters: [],
    create: { member: 'url', example: `https://example.com/hook --set events='["file.created"]'`, owners: [] },
  },
  issuers: {
    path: '/identity_issuers',
    named: 'issuer',
    columns: ['id', 'issuer', 'audience', 'create_users', 'created_at'],
    filters: [],
    create: {
      member: 'issuer',
      example: 'https://login.example.com --set audience=https://api.example.com --set create_users=true',
      owners: [],
    },
  },
};
