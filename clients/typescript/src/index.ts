import { automations } from './automations.ts';
import { Connection, type ConnectOptions } from './connection.ts';
import { extractions } from './extractions.ts';
import { files } from './files.ts';
import { agents } from './generated/agents.ts';
import { answers } from './generated/answers.ts';
import { apps } from './generated/apps.ts';
import { audit } from './generated/audit.ts';
import { auth } from './generated/auth.ts';
import { configs } from './generated/configs.ts';
import { events } from './generated/events.ts';
import { groups } from './generated/groups.ts';
import { installations } from './generated/installations.ts';
import { kv } from './generated/kv.ts';
import { models } from './generated/models.ts';
import { orgs } from './generated/orgs.ts';
import { server } from './generated/server.ts';
import { teams } from './generated/teams.ts';
import { threads } from './generated/threads.ts';
import { knowledge } from './knowledge.ts';
import { runs } from './runs.ts';
import { users } from './users.ts';
import { webhooks } from './webhooks.ts';

/**
 * All operations of a server, by group. A bundle that needs only some of them imports `Connection` from
 * `@quarry/client/connection` and the groups from their own entries: `files(new Connection(options))`.
 */
export class Quarry {
  readonly connection: Connection;
  readonly agents: ReturnType<typeof agents>;
  readonly answers: ReturnType<typeof answers>;
  readonly apps: ReturnType<typeof apps>;
  readonly audit: ReturnType<typeof audit>;
  readonly auth: ReturnType<typeof auth>;
  readonly automations: ReturnType<typeof automations>;
  readonly configs: ReturnType<typeof configs>;
  readonly events: ReturnType<typeof events>;
  readonly extractions: ReturnType<typeof extractions>;
  readonly files: ReturnType<typeof files>;
  readonly installations: ReturnType<typeof installations>;
  readonly knowledge: ReturnType<typeof knowledge>;
  readonly kv: ReturnType<typeof kv>;
  readonly models: ReturnType<typeof models>;
  readonly orgs: ReturnType<typeof orgs>;
  readonly runs: ReturnType<typeof runs>;
  readonly server: ReturnType<typeof server>;
  readonly groups: ReturnType<typeof groups>;
  readonly teams: ReturnType<typeof teams>;
  readonly threads: ReturnType<typeof threads>;
  readonly users: ReturnType<typeof users>;
  readonly webhooks: ReturnType<typeof webhooks>;

  constructor(options: ConnectOptions) {
    const c = new Connection(options);
    this.connection = c;
    this.agents = agents(c);
    this.answers = answers(c);
    this.apps = apps(c);
    this.audit = audit(c);
    this.auth = auth(c);
    this.automations = automations(c);
    this.configs = configs(c);
    this.events = events(c);
    this.extractions = extractions(c);
    this.files = files(c);
    this.installations = installations(c);
    this.knowledge = knowledge(c);
    this.kv = kv(c);
    this.models = models(c);
    this.orgs = orgs(c);
    this.runs = runs(c);
    this.server = server(c);
    this.groups = groups(c);
    this.teams = teams(c);
    this.threads = threads(c);
    this.users = users(c);
    this.webhooks = webhooks(c);
  }
}

export type { CallOptions, ConnectOptions, Pages } from './connection.ts';
export { Connection } from './connection.ts';
export { type Connector, type ConnectorBatch, type ConnectorOptions, checkConnector, connector } from './connector.ts';
export { type ErrorCode, QuarryError } from './errors.ts';
export type { UploadOptions, UploadSource } from './files.ts';
export type * from './generated/schema.ts';
export type { DataOf, DataSchema, FromSchema, InputOf, JsonSchema, StandardSchema } from './schemas.ts';
export { browserStore, type Login, Session, type TokenStore, type Tokens } from './session.ts';
export { EventStream, type StreamEvent } from './streams.ts';
export { verifyWebhook, type WebhookEvent } from './webhooks.ts';
