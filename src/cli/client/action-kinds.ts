/** One request as a command. The arguments in the path are ids or names; the others are members of the body. */
export type Action = {
  /** The command and its arguments: `redeliver <webhook> <delivery>`. */
  usage: string;
  about: string;
  request: `${'GET' | 'POST' | 'PATCH' | 'DELETE'} ${string}`;
  options?: readonly ActionOption[];
  /** The response is a list with these columns. */
  columns?: readonly string[];
  /** The list has pages. */
  paged?: true;
  /** Standard output has only this member of the response. */
  prints?: string;
  /** What is asked before the request, because it destroys something. */
  asks?: string;
  /** Printed on standard error after success, unless --json is given. */
  says?: string;
  example?: string;
};

/** An option that sets a member of the request. `reads` is the type of its value, text by default. Names of owners become ids. */
export type ActionOption = {
  flags: string;
  about: string;
  member: string;
  reads?: 'count' | 'json' | 'secret' | 'user';
};

const overlap = {
  flags: '--overlap <seconds>',
  about: 'how long the previous secret stays valid (default a day; 0 ends it immediately)',
  member: 'overlap_seconds',
  reads: 'count',
} as const;
const shownOnce = 'The secret is not shown again.';

const pagedList = (columns: readonly string[]) => ({ columns, paged: true }) as const;

/** By command group. */
export const actions: Record<string, readonly Action[]> = {
  webhooks: [
    { usage: 'pause <webhook>', about: 'stop deliveries', request: 'POST /webhooks/:webhook/pause' },
    {
      usage: 'resume <webhook>',
      about: 'resume deliveries, including the events of the pause',
      request: 'POST /webhooks/:webhook/resume',
    },
    {
      usage: 'rotate-secret <webhook>',
      about: 'replace the secret and print the new one',
      request: 'POST /webhooks/:webhook/rotate_secret',
      options: [overlap],
      prints: 'secret',
      says: shownOnce,
    },
    {
      usage: 'test <webhook>',
      about: 'send the event webhook.test to this webhook alone',
      request: 'POST /webhooks/:webhook/test',
    },
    {
      usage: 'deliveries <webhook>',
      about: 'list deliveries, newest event first',
      request: 'GET /webhooks/:webhook/deliveries',
      options: [
        { flags: '--state <state>', about: 'only pending, delivered or failed ones', member: 'state' },
        { flags: '--type <event>', about: 'only events of this name', member: 'type' },
      ],
      ...pagedList(['id', 'type', 'sequence', 'state', 'attempts', 'next_attempt_at', 'created_at']),
      example: 'quarry webhooks deliveries https://example.com/hook --state failed',
    },
    {
      usage: 'redeliver <webhook> <delivery>',
      about: 'deliver an event again, whatever its state',
      request: 'POST /webhooks/:webhook/deliveries/:delivery/redeliver',
    },
  ],
  sources: [
    {
      usage: 'kinds',
      about: 'list the types of sources',
      request: 'GET /knowledge_sources/kinds',
      columns: ['type', 'label', 'description'],
    },
    {
      usage: 'ingestions <source>',
      about: 'list the ingestions of a source, newest first',
      request: 'GET /knowledge_sources/:source/ingestions',
      ...pagedList(['id', 'status', 'stats.documents', 'error.message', 'created_at']),
    },
    {
      usage: 'inbound-url <source>',
      about: 'print the secret URL at which a webhook/inbound source accepts documents',
      request: 'GET /knowledge_sources/:source/inbound_url',
      prints: 'url',
    },
    {
      usage: 'replace-inbound-url <source>',
      about: 'replace the inbound URL and print the new one; the old one stops working immediately',
      request: 'POST /knowledge_sources/:source/inbound_url',
      prints: 'url',
    },
    {
      usage: 'require-signatures <source>',
      about: 'accept only signed messages at the inbound URL, and print the secret; repeat to replace the secret',
      request: 'POST /knowledge_sources/:source/inbound_url/signing_secret',
      options: [
        { flags: '--secret <file>', about: "file with the sender's secret, or -", member: 'secret', reads: 'secret' },
        overlap,
      ],
      prints: 'secret',
      says: shownOnce,
      example: 'quarry sources require-signatures cso_… --secret - < secret.txt',
    },
    {
      usage: 'accept-unsigned <source>',
      about: 'accept unsigned messages at the inbound URL again',
      request: 'DELETE /knowledge_sources/:source/inbound_url/signing_secret',
      says: 'The inbound URL accepts unsigned messages.',
    },
  ],
  documents: [
    {
      usage: 'chunks <document>',
      about: 'list the chunks that searches find',
      request: 'GET /knowledge_documents/:document/chunks',
      ...pagedList(['id', 'start_line', 'end_line', 'content']),
    },
  ],
  teams: [
    {
      usage: 'members <team>',
      about: 'list the members of a team',
      request: 'GET /teams/:team/members',
      ...pagedList(['id', 'type', 'name', 'user.email', 'role', 'joined_at']),
    },
    {
      usage: 'add-member <team>',
      about: 'add a user or an agent',
      request: 'POST /teams/:team/members',
      options: [
        { flags: '--user <user>', about: 'the user, by id, e-mail or name', member: 'user' },
        { flags: '--agent <agent>', about: 'the agent, by id, lookup key or name', member: 'agent' },
        { flags: '--role <role>', about: 'owner, admin or member (default)', member: 'role' },
      ],
      example: 'quarry teams add-member Support --user ada@example.com --role admin',
    },
    {
      usage: 'set-role <team> <member> <role>',
      about: 'change the role of a member: owner, admin or member',
      request: 'PATCH /teams/:team/members/:member',
      example: 'quarry teams set-role Support ada@example.com owner',
    },
    {
      usage: 'remove-member <team> <member>',
      about: 'remove a member, by id, e-mail, lookup key or name',
      request: 'DELETE /teams/:team/members/:member',
      says: 'Removed.',
    },
  ],
  users: [
    {
      usage: 'tokens <user>',
      about: "list a user's personal tokens",
      request: 'GET /users/:user/tokens',
      columns: ['id', 'name', 'expires_at', 'last_used_at', 'created_at'],
    },
    {
      usage: 'revoke-token <user> <token>',
      about: 'revoke a personal token, by id or name',
      request: 'DELETE /users/:user/tokens/:token',
      says: 'Revoked.',
    },
    {
      usage: 'revoke-sessions <user>',
      about: 'end all sessions and tokens of a user',
      request: 'POST /users/:user/sessions/revoke',
      says: 'All sessions and tokens of the user have ended.',
    },
  ],
  threads: [
    {
      usage: 'message <thread> <content>',
      about: 'add a message to a thread',
      request: 'POST /threads/:thread/messages',
      options: [{ flags: '--metadata <json>', about: 'its metadata', member: 'metadata', reads: 'json' }],
    },
  ],
  files: [
    {
      usage: 'upload-url <filename> <content_type>',
      about: 'print a URL at which one file can be uploaded without a credential',
      request: 'POST /files/upload_urls',
      options: [
        { flags: '--user <user>', about: 'user that will own it', member: 'user' },
        { flags: '--team <team>', about: 'team that will own it', member: 'team' },
        { flags: '--org <org>', about: 'organisation that it will belong to', member: 'org' },
        { flags: '--agent <agent>', about: 'agent that it will belong to', member: 'agent' },
        { flags: '--expires-in <seconds>', about: 'how long the URL works', member: 'expires_in', reads: 'count' },
      ],
      prints: 'url',
      example: 'quarry files upload-url report.pdf application/pdf --user ada@example.com',
    },
  ],
  automations: [
    {
      usage: 'invocable',
      about: 'list the automations that you may invoke now',
      request: 'GET /invocable_automations',
      ...pagedList(['id', 'name', 'lookup_key', 'description']),
    },
    {
      usage: 'activate <automation>',
      about: 'allow it to start runs',
      request: 'POST /automations/:automation/activate',
    },
    {
      usage: 'pause <automation>',
      about: 'stop new runs; those in progress continue',
      request: 'POST /automations/:automation/pause',
    },
    {
      usage: 'versions <automation>',
      about: 'list the versions of its graph, newest first',
      request: 'GET /automations/:automation/versions',
      ...pagedList(['version', 'created_at']),
    },
    {
      usage: 'version <automation> <version>',
      about: 'print one version of its graph as JSON',
      request: 'GET /automations/:automation/versions/:version',
      prints: 'workflow',
    },
  ],
  runs: [{ usage: 'get <run>', about: 'show a run', request: 'GET /automation_runs/:run' }],
  secrets: [
    {
      usage: 'list',
      about: 'list the names of the secrets',
      request: 'GET /secrets',
      columns: ['name', 'created_at', 'updated_at'],
    },
    {
      usage: 'delete <name>',
      about: 'delete a secret, after a question',
      request: 'DELETE /secrets/:name',
      asks: 'Delete the secret?',
      says: 'Deleted.',
    },
  ],
  configs: [
    {
      usage: 'list',
      about: 'list config entries',
      request: 'GET /config',
      options: [
        { flags: '--prefix <path>', about: 'only paths that begin with this', member: 'prefix' },
        { flags: '--agent <agent>', about: 'paths of this agent', member: 'agent' },
        { flags: '--org <org>', about: 'paths of this organisation', member: 'org' },
      ],
      ...pagedList(['virtual_path', 'content_type', 'version', 'updated_at']),
    },
    {
      usage: 'get <path>',
      about: 'print the content of a config entry',
      request: 'GET /config/:path',
      options: [
        { flags: '--at-version <number>', about: 'an older version', member: 'version', reads: 'count' },
        { flags: '--agent <agent>', about: 'a path of this agent', member: 'agent' },
        { flags: '--org <org>', about: 'a path of this organisation', member: 'org' },
      ],
      prints: 'content',
    },
  ],
  audit: [
    {
      usage: 'list',
      about: 'list changes and who made them, newest first',
      request: 'GET /audit',
      options: [
        {
          flags: '--actor <actor>',
          about: 'only by this user (id, e-mail or name), or by the key, developer or source with this id',
          member: 'actor',
          reads: 'user',
        },
        { flags: '--action <operation>', about: 'only this operation, such as createFile', member: 'action' },
        { flags: '--resource <id>', about: 'only of this resource', member: 'resource' },
        { flags: '--since <time>', about: 'only since this time, in ISO 8601', member: 'since' },
        { flags: '--until <time>', about: 'only before this time', member: 'until' },
      ],
      ...pagedList(['at', 'actor.kind', 'actor.id', 'action', 'resource', 'status', 'address']),
      example: 'quarry audit list --action deleteFile --since 2026-01-01T00:00:00Z',
    },
    {
      usage: 'credentials',
      about: 'list when each credential was used',
      request: 'GET /credential_uses',
      options: [{ flags: '--credential <id>', about: 'only of this user, key or token', member: 'credential' }],
      ...pagedList(['credential', 'kind', 'day', 'requests', 'refused', 'last_at']),
    },
  ],
  token: [{ usage: 'show <key>', about: 'show an API key, without its secret part', request: 'GET /keys/:key' }],
  events: [
    {
      usage: 'emit <name>',
      about: 'emit an event, which starts automations and is sent to webhooks',
      request: 'POST /events',
      options: [
        { flags: '--payload <json>', about: 'its payload: JSON, @file, or -', member: 'payload', reads: 'json' },
      ],
      example: `quarry events emit order.paid --payload '{"total": 7}'`,
    },
  ],
};

/** Descriptions of groups that contain only actions. */
export const groupAbout: Record<string, string> = {
  audit: 'list changes, and when credentials were used',
  configs: 'list and print config entries',
  events: 'emit and follow events',
  secrets: 'list, set and delete the secrets of an app, which automations use',
};
