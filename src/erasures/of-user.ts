import type { Db, Statement } from '../db/database.ts';
import type { Deletion } from './deletions.ts';
import type { Subject } from './store.ts';

/*
 * What belongs to a user: rows that name the user or one of the user's agents as the owner, and what lies below them.
 * Sources are erased before (of-source.ts); files and runs have ways of their own (workflow.ts).
 */

/** SQL: the row `t` belongs to the user or to an agent of the user. */
export function ownedByUser(db: Db, { appId, subjectId }: Subject): Statement {
  return db`(t.user_id = ${subjectId} or t.agent_id in (${agentsOfUser(db, { appId, subjectId })}))`;
}

/** SQL: the ids of the user's agents. */
export function agentsOfUser(db: Db, { appId, subjectId }: Subject): Statement {
  return db`select a.id from agents a where a.app_id = ${appId} and a.user_id = ${subjectId}`;
}

/** SQL: the run `t` was started by the user, is the user's, or is one of an automation of the user. */
export function runOfUser(db: Db, erasure: Subject): Statement {
  const { appId, subjectId } = erasure;
  const agents = agentsOfUser(db, erasure);
  return db`(${ownedByUser(db, erasure)} or t.invoked_by_user_id = ${subjectId} or t.invoked_by_agent_id in (${agents})
    or t.automation_id in (${automationsOfUser(db, erasure)})
    or exists (select from automation_runs parent where parent.app_id = ${appId} and parent.id = t.parent_run_id
      and (parent.invoked_by_user_id = ${subjectId} or parent.user_id = ${subjectId}
        or parent.automation_id in (${automationsOfUser(db, erasure)}))))`;
}

/** SQL: the ids of the automations of the user. */
export function automationsOfUser(db: Db, { appId, subjectId }: Subject): Statement {
  return db`select a.id from automations a where a.app_id = ${appId} and (a.user_id = ${subjectId}
    or a.agent_id in (${agentsOfUser(db, { appId, subjectId })}))`;
}

/** Events, stored responses and records of calls: what names the user, before what it names is deleted. */
export function tracesOfUser(erasure: Subject): Deletion[] {
  const { subjectId } = erasure;
  const mine = (db: Db) => ownedByUser(db, erasure);
  const agents = (db: Db) => agentsOfUser(db, erasure);
  const caller = (db: Db, column: string) =>
    db`(${db(column)} = ${`user/${subjectId}`} or ${db(column)} in (
      select 'agent/' || mine.id from (${agents(db)}) mine))`;
  return [
    {
      table: 'events',
      count: 'events',
      where: (db) => db`(${mine(db)} or t.subject_id = ${subjectId} or t.subject_id in (${agents(db)}))`,
    },
    { table: 'idempotency_records', count: 'stored_responses', where: (db) => caller(db, 't.holder') },
    { table: 'idempotency_holders', where: (db) => caller(db, 't.holder') },
    { table: 'automation_invocations', count: 'stored_responses', where: (db) => caller(db, 't.caller') },
    {
      table: 'model_calls',
      count: 'model_calls',
      where: (db) => db`(${mine(db)} or t.automation_id in (${automationsOfUser(db, erasure)}))`,
    },
    {
      table: 'model_budget_uses',
      count: 'budget_uses',
      where: (db) => db`(t.subject_id = ${subjectId} or t.subject_id in (${agents(db)}))`,
    },
    {
      table: 'model_budgets',
      count: 'budgets',
      where: (db) => db`(t.subject_id = ${subjectId} or t.subject_id in (${agents(db)}))`,
    },
  ];
}

/** What belongs to the user, children before parents, so that no deletion cascades to an unknown number of rows. */
export function propertyOfUser(erasure: Subject): Deletion[] {
  const { appId, subjectId } = erasure;
  const mine = (db: Db) => ownedByUser(db, erasure);
  const user = (db: Db) => db`t.user_id = ${subjectId}`;
  const below = (db: Db, column: string, table: string) =>
    db`${db(column)} in (select t.id from ${db(table)} t where t.app_id = ${appId} and ${mine(db)})`;
  const principal = (db: Db) =>
    db`(t.principal_type = 'user' and t.principal_id = ${subjectId}
      or t.principal_type = 'agent' and t.principal_id in (${agentsOfUser(db, erasure)}))`;
  return [
    { table: 'automations', count: 'automations', where: mine },
    { table: 'crawl_pages', where: (db) => below(db, 't.crawl_id', 'extractions') },
    { table: 'crawls', where: (db) => below(db, 't.id', 'extractions') },
    {
      table: 'extraction_parts',
      where: (db) => db`t.output_id in (select o.id from extraction_outputs o
        where o.app_id = ${appId} and ${below(db, 'o.extraction_id', 'extractions')})`,
    },
    {
      table: 'extraction_outputs',
      count: 'extraction_outputs',
      where: (db) => below(db, 't.extraction_id', 'extractions'),
    },
    { table: 'extractions', count: 'extractions', where: mine },
    { table: 'config_versions', where: (db) => below(db, 't.config_id', 'configs') },
    { table: 'configs', count: 'configs', where: mine },
    { table: 'openai_responses', count: 'answers', where: user },
    { table: 'threads', count: 'threads', where: mine },
    { table: 'kv_entries', count: 'key_value_entries', where: user },
    { table: 'kv_changes', where: user },
    { table: 'kv_watches', where: user },
    { table: 'kv_usage', where: user },
    { table: 'file_grants', count: 'grants', where: principal },
    { table: 'knowledge_acl_principals', count: 'grants', where: principal },
    { table: 'team_memberships', count: 'memberships', where: mine },
    { table: 'group_members', count: 'memberships', where: user },
    {
      table: 'credential_uses',
      count: 'credential_uses',
      where: (db) => db`(t.kind = 'user' and t.credential_id = ${subjectId} or t.credential_id in (
        select p.id from personal_tokens p where p.app_id = ${appId} and p.user_id = ${subjectId}))`,
    },
    { table: 'personal_tokens', count: 'credentials', where: user },
    { table: 'refresh_tokens', count: 'credentials', where: user },
    { table: 'console_user_sessions', count: 'credentials', where: user },
    { table: 'assistant_grants', count: 'credentials', where: user },
    { table: 'external_accounts', count: 'sign_in_accounts', where: user },
    { table: 'sign_in_addresses', count: 'sign_in_addresses', where: user },
    { table: 'installations', where: (db) => db`t.agent_id in (${agentsOfUser(db, erasure)})` },
    { table: 'agents', count: 'agents', where: user },
    { table: 'users', count: 'users', where: (db) => db`t.id = ${subjectId}` },
  ];
}
