-- The ledger: chains of digests over the audit log and the journals of runs, in signed segments (docs/verify.md).

-- The link of the entry `linked`, null while that is 0. Entries after it, and those from before this migration, have no
-- link of their own: the next link covers them.
alter table automation_runs add column link bytea, add column linked integer not null default 0;
alter table automation_run_entries add column link bytea;

-- The segment that covers an entry.
alter table audit_entries add column segment bigint;
create index audit_entries_unsealed on audit_entries (app_id, sandbox_id, at, id) where segment is null;

-- The link of a journal when its run waited or ended. Without foreign keys: what was sealed remains when the run is deleted.
create table run_anchors (
  app_id uuid not null,
  run_id uuid not null,
  sequence integer not null,
  sandbox_id uuid not null,
  automation_id uuid not null,
  link bytea not null,
  at timestamptz not null,
  segment bigint,
  primary key (app_id, run_id, sequence)
);
create index run_anchors_unsealed on run_anchors (app_id, sandbox_id, at, run_id, sequence) where segment is null;

-- The last segment of each app and sandbox. Its lock orders them.
create table ledgers (
  app_id uuid not null,
  sandbox_id uuid not null,
  number bigint not null,
  digest bytea not null,
  primary key (app_id, sandbox_id)
);

create table ledger_segments (
  app_id uuid not null,
  sandbox_id uuid not null,
  number bigint not null,
  kind text not null check (kind in ('start', 'audit', 'runs', 'retention', 'deletion')),
  sealed_at timestamptz not null,
  records integer not null,
  -- The time of the newest record.
  last_at timestamptz,
  -- For each record 60 bytes; null once retention has deleted them all.
  list bytea,
  list_digest bytea not null,
  detail text,
  previous bytea not null,
  key_id text not null,
  signature bytea not null,
  primary key (app_id, sandbox_id, number)
);
create index ledger_segments_notes on ledger_segments (app_id, sandbox_id, number) where kind in ('retention', 'deletion');

-- Public keys of signatures. The key that follows signs the one before it.
create table ledger_keys (
  id text primary key,
  public_key bytea not null,
  endorsed_by text,
  endorsement bytea,
  created_at timestamptz not null default now()
);

-- How far the journals from before this migration have been linked; no row when all are.
create table ledger_inheritance (
  app_id uuid not null,
  run_id uuid not null
);
insert into ledger_inheritance
select '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
where exists (select 1 from automation_run_entries);

-- A field of a record: its length in bytes as 32 bits, then UTF-8; -1 for null.
create function ledger_field(value text) returns bytea language sql immutable parallel safe as $$
  select case when value is null then '\xffffffff'::bytea
    else int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8') end
$$;

create function ledger_time(at timestamptz) returns text language sql stable parallel safe as $$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

create function run_entry_link(link bytea, app uuid, run uuid, sequence integer, id uuid, type text, node text,
  command text, timer text, record text, at timestamptz) returns bytea language plpgsql stable as $$
begin
  return sha256(link || sha256(ledger_field('quarry:run-entry:1') || ledger_field(app::text) || ledger_field(run::text)
    || ledger_field(sequence::text) || ledger_field(id::text) || ledger_field(type) || ledger_field(node)
    || ledger_field(command) || ledger_field(timer) || ledger_field(record) || ledger_field(ledger_time(at))));
end $$;

-- The links of entries that follow `after`; of the last entry, when none follow. Those that have no link yet come first.
create function link_run_entries(app uuid, run uuid, link bytea, linked integer, after integer, ids uuid[], types text[],
  nodes text[], commands text[], timers text[], records text[], at timestamptz) returns bytea[] language plpgsql stable as $$
declare
  state bytea := coalesce(link, decode(repeat('00', 32), 'hex'));
  links bytea[] := '{}';
  e record;
begin
  if linked < after then
    for e in select * from automation_run_entries a where a.app_id = app and a.run_id = run and a.sequence > linked
        and a.sequence <= after order by a.sequence loop
      state := run_entry_link(state, app, run, e.sequence, e.id, e.type, e.node_id, e.command_id, e.timer_id,
        e.record::text, e.created_at);
    end loop;
  end if;
  for i in 1..coalesce(cardinality(ids), 0) loop
    state := run_entry_link(state, app, run, after + i, ids[i], types[i], nodes[i], commands[i], timers[i], records[i], at);
    links := links || state;
  end loop;
  return case when links = '{}' then array[state] else links end;
end $$;
