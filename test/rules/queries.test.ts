import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largeTables } from '../../src/db/partition.ts';
import { namesOf, readProjectFile, readSources, type Source } from '../support/source.ts';

const sources = readSources('src');

/** The text of each template with SQL, with the templates in its values. */
function listStatements({ text }: Source): string[] {
  const template = /`((?:[^`\\]|\\.|\$\{(?:[^{}`]|`[^`]*`|\{[^}]*\})*\})*)`/g;
  return [...text.matchAll(template)].map(([, statement = '']) => statement);
}

/** From each `(select` to its closing parenthesis. */
function listSubSelects(statement: string): string[] {
  return [...statement.matchAll(/\(\s*(?:with [^(]*\(\s*)?select\b/g)].map(({ index }) => {
    let depth = 0;
    for (let at = index; at < statement.length; at++) {
      if (statement[at] === '(') depth += 1;
      if (statement[at] === ')' && --depth === 0) return statement.slice(index, at + 1);
    }
    return statement.slice(index);
  });
}

/**
 * Statements that take the app of a sub-select from a row, because they are about all apps, or about rows of several. Each
 * is named by a part of its text.
 */
const ofSeveralApps: Readonly<Record<string, readonly string[]>> = {
  'src/events/store.ts': ['delete from events where (app_id, id) in'],
  'src/files/store.ts': ['from doomed_blobs d where', 'select k.blob_key from unnest('],
  'src/knowledge/learning/store.ts': ['i.open_added - m.open_added >= m.chunk_count'],
  'src/knowledge/permissions/store.ts': ['delete from knowledge_acls where (app_id, id) in'],
  'src/knowledge/versions/store.ts': ['select s.app_id, s.id as source_id from knowledge_sources s'],
  'src/monitoring/store.ts': ["(select 'document', 'unembedded'"],
  'src/oauth/store.ts': ['exists (\n    select from users u where u.app_id = t.app_id'],
  'src/tenancy/credential-store.ts': ['where (g.expires_at is null or g.expires_at > '],
  'src/webhooks/delivery-store.ts': ['select w.app_id, w.id as webhook_id'],
};

/** Sub-selects that take the app from a row outside of them. */
const takesAppFromRow = (statement: string) =>
  listSubSelects(statement).some((subSelect) => {
    const tables =
      /\b(?:from|join|,)\s+(?:\$\{[^}]*\}|\w+)(?:\s+(?:as\s+)?(?!(?:cross|join|left|on|order|where)\b)(\w+))?/g;
    const own = new Set([...subSelect.matchAll(tables)].flatMap(([whole, alias]) => [alias, whole.split(/\s+/).at(1)]));
    const pairs = subSelect.matchAll(/\b(\w+)\.app_id = (\w+)\.app_id\b/g);
    return [...pairs].some(([, one, other]) => !own.has(one) || !own.has(other));
  });

/** What ON CONFLICT assigns, up to its condition. */
const assignsNow = (statement: string) =>
  [...statement.matchAll(/\bdo update\s+set\b(.*?)(?:\bwhere\b|\breturning\b|$)/gs)].some(([, assigned = '']) =>
    /(?<![<>])= now\(\)|\bthen now\(\)/.test(assigned),
  );

/** Deletes or changes the rows that a sub-select with a limit has chosen. */
const choosesRows = (statement: string) =>
  /\b(?:delete from|update)\b/.test(statement) &&
  (listSubSelects(statement).some((subSelect) => /\blimit\b/.test(subSelect)) ||
    /\bwith\b.*\blimit\b/s.test(statement));

const locksRows = (statement: string) => /\bfor update\b/.test(statement);
/** Rows of any app, as opposed to those of one. */
const isOfAllApps = (statement: string) => !/\bapp_id = \$\{/.test(statement);
const passesOverMoves = (statement: string) => statement.includes('isInUse(');

/** Statements that choose rows without locking them, each named by a part of its text, with the reason. */
const unlocked: Readonly<Record<string, readonly [part: string, reason: string]>> = {
  'src/cells/move/tables.ts': ['and ctid = any', 'the app is frozen'],
  'src/events/store.ts': ['update events e set position', 'the log of the events is locked'],
  'src/ledger/store.ts': ['with page as materialized', 'the place is locked, and what changes is looked at again'],
  'src/knowledge/ingestion/listing-store.ts': ['set external_seen_by', 'the limit is that of a value, not of rows'],
  'src/knowledge/ingestion/store.ts': ['set queued = false', 'the source is locked'],
  'src/knowledge/versions/store.ts': ['delete from knowledge_versions where', 'the index of the source is locked'],
};
/** Without what is in closed parentheses. */
function withoutParts(text: string): string {
  const shorter = text.replaceAll(/\([^()]*\)/g, '');
  return shorter === text ? text : withoutParts(shorter);
}

/** Whether a select locks rows that it does not name one by one. */
const locksInNoOrder = (statement: string) =>
  [...statement.matchAll(/\bfor (?:no key )?(?:update|share|key share)\b(?! (?:of \w+ )?skip locked)/g)].some(
    ({ index }) => {
      const select =
        withoutParts(statement.slice(0, index))
          .split(/\bselect\b/)
          .at(-1) ?? '';
      if (/\border by\b|\blimit 1\b/.test(select)) return false;
      const ofApp = /\bapp_id = \$\{[^}]*\}/g;
      return /\blimit\b|= any\b/.test(select) || !/\b(?:id|\w+_id|digest) =/.test(select.replaceAll(ofApp, ''));
    },
  );
/** Statements that do, each named by a part of its text: the table has one row; one row at a time. */
const inNoOrder: Readonly<Record<string, string>> = {
  'src/ledger/store.ts': 'from ledger_inheritance for update',
};

/** Takes the newest place of the oldest events, and changes their logs. */
const ofLogs = 'update event_logs l set kept_after = old.position';
/**
 * Statements without a condition on moves: of one app that is frozen, a walk that remembers its place, and one whose
 * condition is a value.
 */
const ofNoMove: Readonly<Record<string, string>> = {
  'src/cells/move/tables.ts': 'and ctid = any',
  'src/ledger/store.ts': 'with page as materialized',
  'src/db/delete-batch.ts': 'for update of t skip locked',
};

/** Deletes or changes what is older than something, of whatever app, in one transaction. */
const isWithoutLimit = (statement: string) =>
  /\b(?:delete from|update)\b/.test(statement) &&
  !/\b(?:limit|on conflict)\b/.test(statement) &&
  !/(?<![<>])= (?:any ?\()?\$\{/.test(statement) &&
  /\b(?:at|day|period|until|\w+_(?:at|until|after))\s*<=?\s/.test(statement);

const findStatements = (isWrong: (statement: string, source: Source) => boolean) =>
  namesOf(sources.filter((source) => listStatements(source).some((statement) => isWrong(statement, source))));

const isOfSeveralApps = (statement: string, { name }: Source) =>
  ofSeveralApps[name]?.some((part) => statement.includes(part)) === true;

test('a sub-select names its app, unless its statement is about several', () => {
  assert.deepEqual(
    findStatements((statement, source) => takesAppFromRow(statement) && !isOfSeveralApps(statement, source)),
    [],
    'Write the app into the sub-select: PostgreSQL then plans it for one partition. If there are several, name it above.',
  );
});

test('what a statement chooses to delete or change, it locks: it may have changed since', () => {
  const isExcepted = (statement: string, { name }: Source) =>
    statement.includes(ofLogs) || (unlocked[name] !== undefined && statement.includes(unlocked[name][0]));
  assert.deepEqual(
    findStatements((one, source) => choosesRows(one) && !locksRows(one) && !isExcepted(one, source)),
    [],
    'Write `for update skip locked` behind the limit. A row that was refreshed meanwhile is then left as it is.',
  );
  for (const [name, [part]] of Object.entries(unlocked)) {
    const statements = sources.filter((source) => source.name === name).flatMap(listStatements);
    assert.ok(
      statements.some((one) => one.includes(part) && choosesRows(one) && !locksRows(one)),
      name,
    );
  }
});

test('what locks several rows of a table locks them in order, or passes over locked ones', () => {
  const isListed = (statement: string, { name }: Source) =>
    inNoOrder[name] !== undefined && statement.includes(inNoOrder[name]);
  assert.deepEqual(
    findStatements((one, source) => locksInNoOrder(one) && !isListed(one, source)),
    [],
    'Write an order by the key, or `skip locked`; for large batches, changeBatch of db/delete-batch.ts does this.',
  );
  for (const [name, part] of Object.entries(inNoOrder)) {
    const statements = sources.filter((source) => source.name === name).flatMap(listStatements);
    assert.ok(
      statements.some((one) => one.includes(part) && locksInNoOrder(one)),
      name,
    );
  }
});

test('work for all apps passes over those that are being moved: their rows would fill every batch', () => {
  assert.deepEqual(
    findStatements(
      (one, { name }) =>
        choosesRows(one) &&
        isOfAllApps(one) &&
        !passesOverMoves(one) &&
        (ofNoMove[name] === undefined || !one.includes(ofNoMove[name])),
    ),
    [],
    'Write isInUse into the condition.',
  );
});

test('a sweep has a limit: a large transaction delays new event streams of every app', () => {
  assert.deepEqual(findStatements(isWithoutLimit), [], 'Use sweepRows of db/delete-batch.ts.');
});

test('a sweep of rows of no app is one of a table without apps, and none is of a partitioned table', () => {
  const calls = sources.flatMap(({ text }) => [...text.matchAll(/\b(sweepRows\w*)\(\w+, \{\s*table: '(\w+)'/g)]);
  assert.ok(calls.length >= 15, `${calls.length} calls`);
  const schema = readProjectFile('migrations/schema.txt').split('\n\n');
  const hasApp = (table: string) => {
    const found = schema.find((one) => new RegExp(`^(?:unlogged )?table ${table}\\b`).test(one));
    return found?.includes('\n  app_id uuid');
  };
  for (const [, name, table = ''] of calls) {
    assert.equal(name === 'sweepRows', hasApp(table), `${name} of ${table}`);
    assert.ok(!largeTables.includes(table), table);
  }
});

test('every statement that is listed as one of several apps has such a sub-select', () => {
  for (const [name, parts] of Object.entries(ofSeveralApps))
    for (const part of parts) {
      const [source] = sources.filter((each) => each.name === name);
      const found = source && listStatements(source).some((one) => one.includes(part) && takesAppFromRow(one));
      assert.ok(found, `${name}: ${part}`);
    }
});

test('an upsert takes its time from the row that it would insert', () => {
  assert.deepEqual(findStatements(assignsNow), [], 'Write `= excluded.updated_at`, whose default is now().');
});

test('the rules find what is wrong, and nothing else', () => {
  const appId = '$'.concat('{appId}');
  const of = (subSelect: string) => `select 1 from a where a.app_id = ${appId} and exists (${subSelect})`;
  assert.ok(takesAppFromRow(of('select from b where b.app_id = a.app_id and b.id = a.id')));
  assert.ok(!takesAppFromRow(of(`select from b where b.app_id = ${appId} and b.id = a.id`)));
  assert.ok(!takesAppFromRow(of(`select from b join c on c.app_id = b.app_id where b.app_id = ${appId}`)));
  assert.ok(takesAppFromRow('delete from a where exists (select from b where b.app_id = a.app_id)'));
  assert.ok(assignsNow('insert into a values (1) on conflict (n) do update set n = 1, at = now() where true'));
  assert.ok(!assignsNow('insert into a values (1) on conflict (n) do update set n = 1 where at = now()'));
  assert.ok(!assignsNow('update a set at = now()'));
  const chosen = (rest: string) =>
    `delete from a where ctid = any(array(select ctid from a where old limit 1 ${rest}))`;
  assert.ok(choosesRows(chosen('')) && !locksRows(chosen('')) && locksRows(chosen('for update skip locked')));
  assert.ok(choosesRows('with n as (select 1 from a limit 1) delete from a using n'));
  assert.ok(!choosesRows('delete from a where b = 1') && !choosesRows('select 1 from a limit 1'));
  assert.ok(isWithoutLimit('delete from a where expires_at <= $'.concat('{now}')) && !isWithoutLimit(chosen('')));
  assert.ok(!isWithoutLimit('delete from a where id = $'.concat('{id} and expires_at <= now()')));
  assert.ok(locksInNoOrder('select id from a where b = 1 limit 9 for update') && !locksInNoOrder(chosen('for update')));
  assert.ok(locksInNoOrder(`select 1 from a where app_id = ${appId} and id = any($) for share`));
  assert.ok(!locksInNoOrder(chosen('for update skip locked')));
  assert.ok(!locksInNoOrder(`select 1 from a where app_id = ${appId} and id = ${appId} for update`));
  assert.ok(!locksInNoOrder('select id from a where old order by id for update'));
  assert.ok(isOfAllApps(chosen('')) && !isOfAllApps(`${chosen('')} and app_id = ${appId}`));
});
