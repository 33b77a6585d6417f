-- Moves of apps between databases (docs/decisions/0505-moves-by-changed-keys.md).

-- An app whose rows in this database are not, or not yet, the ones in use: on the source of a move from the freeze on, on
-- its target until the switch. Triggers that exist only during a move ask app_may_write() about each row.
create table app_fences (
  app_id uuid not null primary key,
  move_id uuid not null,
  side text not null check (side in ('source', 'target')),
  -- Whether writes are refused. A source is fenced first and frozen later.
  frozen boolean not null default false,
  -- Whether audit entries are refused as well, which processes write up to a second after the response.
  sealed boolean not null default false,
  created_at timestamptz not null default now()
);

-- The keys of rows that changed after a move had started. The move copies those rows again.
create table app_changes (
  app_id uuid not null,
  id bigint not null generated always as identity,
  relation text not null,
  key jsonb not null,
  primary key (app_id, id)
);

-- The jobs of an app from the freeze until the target runs them.
create table app_held_jobs (
  app_id uuid not null,
  id bigint not null,
  task text not null,
  payload json not null,
  key text,
  priority smallint not null,
  run_at timestamptz not null,
  attempts smallint not null,
  max_attempts smallint not null,
  last_error text,
  crashes smallint not null,
  primary key (app_id, id)
);

-- Whether the caller may write a row of this app. False tells a sweep over all apps to leave the row as it is; every
-- other write is refused. The lock makes a freeze wait for the writes before it.
create function app_may_write(the_app uuid, is_late boolean) returns boolean language plpgsql as $$
declare
  fence app_fences;
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('move/' || the_app, 0));
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'a write in an isolated transaction cannot see whether its app is being moved' using errcode = 'QM001';
  end if;
  select * into fence from app_fences f where f.app_id = the_app;
  if fence.frozen is not true or is_late and not fence.sealed then
    return true;
  end if;
  if current_setting('quarry.every_app', true) = 'on' then
    return false;
  end if;
  raise exception 'the app is being moved to another cell' using errcode = 'QM001';
end $$;

-- The directory's list of moves. A move that has not ended is the only one of its app.
create table cell_moves (
  app_id uuid not null,
  id uuid not null,
  source text not null,
  target text not null,
  step text not null check (step in (
    'preparing', 'copying', 'catching_up', 'freezing', 'opening', 'cleaning', 'aborting', 'done', 'aborted')),
  -- Tables that are copied, and rows.
  copied text[] not null default '{}',
  copied_rows bigint not null default 0,
  -- Why the last try ended early.
  error text,
  started_at timestamptz not null default now(),
  frozen_at timestamptz,
  switched_at timestamptz,
  ended_at timestamptz,
  primary key (app_id, id)
);
create unique index cell_moves_active on cell_moves (app_id) where ended_at is null;
create index cell_moves_newest on cell_moves (started_at desc, id desc);
