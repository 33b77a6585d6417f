-- Rate limits: what is left of each credential's budget in each group of routes. A budget is a bucket of tokens that
-- fills evenly by this database's clock; processes charge it in batches, and it may be in debt.
create unlogged table rate_budgets (
  credential_id uuid not null,
  route_group text not null,
  tokens double precision not null,
  filled_at timestamptz not null,
  primary key (credential_id, route_group)
) with (fillfactor = 50);

-- Quotas: what each app, in production and in each sandbox for itself, has of what is bounded. Sandboxes are counted in
-- production.
create table quota_defaults (
  measure text primary key,
  bound bigint not null
);

-- The operator's bound takes the place of the default; the app's own can only be tighter.
create table app_quotas (
  app_id uuid not null references apps (id) on delete cascade,
  measure text not null check (measure in ('file_bytes', 'documents', 'pages', 'sandboxes')),
  operator_bound bigint check (operator_bound >= 0),
  own_bound bigint check (own_bound >= 0),
  primary key (app_id, measure)
);

-- The number is the sum of parts: a write takes any part that nobody else is writing, so writers never wait for each
-- other here. `period` is the day (UTC) of what is bounded by the day, and 'epoch' of the rest.
create table app_usage (
  app_id uuid not null,
  sandbox_id uuid not null,
  measure text not null check (measure in ('file_bytes', 'documents', 'pages', 'sandboxes')),
  period date not null,
  part integer not null,
  used bigint not null,
  primary key (app_id, sandbox_id, measure, period, part),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
) with (fillfactor = 50);

create function quota_bound(the_app uuid, the_measure text) returns bigint language sql stable as $$
  select least(coalesce(q.operator_bound, d.bound), q.own_bound)
  from (select) one
  left join quota_defaults d on d.measure = the_measure
  left join app_quotas q on q.app_id = the_app and q.measure = the_measure
$$;

create function usage_period(the_measure text) returns date language sql volatile as $$
  select case the_measure when 'pages' then (clock_timestamp() at time zone 'UTC')::date else date 'epoch' end
$$;

create function app_used(the_app uuid, the_sandbox uuid, the_measure text) returns bigint language sql volatile as $$
  select coalesce(sum(u.used), 0)::bigint from app_usage u
  where u.app_id = the_app and u.sandbox_id = the_sandbox and u.measure = the_measure
    and u.period = usage_period(the_measure)
$$;

-- Books `change`. Raises QA001 when that would pass the bound; what gives back always passes. Far from the bound nobody
-- waits: the sum is read as it is committed. Within the last twentieth (or the last 4 GiB, 1,000 documents or pages)
-- writers come one after the other, so the bound is exact unless more than that is being committed at one moment.
create function app_use(the_app uuid, the_sandbox uuid, the_measure text, change bigint) returns void
language plpgsql as $$
declare
  the_period constant date :=
    case the_measure when 'pages' then (clock_timestamp() at time zone 'UTC')::date else date 'epoch' end;
  own bigint;
  bound bigint;
  taken bigint;
begin
  if change = 0 then return; end if;
  if change > 0 then
    select q.operator_bound, q.own_bound into bound, own from app_quotas q
    where q.app_id = the_app and q.measure = the_measure;
    if bound is null then
      select d.bound into bound from quota_defaults d where d.measure = the_measure;
    end if;
    bound := least(bound, own);
    if bound is not null then
      select coalesce(sum(u.used), 0) into taken from app_usage u
      where u.app_id = the_app and u.sandbox_id = the_sandbox and u.measure = the_measure and u.period = the_period;
      if taken + change > bound - greatest(bound / 20, case the_measure when 'file_bytes' then 4294967296 else 1000 end)
      then
        perform pg_advisory_xact_lock(hashtextextended(format('quota/%s/%s/%s', the_app, the_sandbox, the_measure), 0));
        select coalesce(sum(u.used), 0) into taken from app_usage u
        where u.app_id = the_app and u.sandbox_id = the_sandbox and u.measure = the_measure and u.period = the_period;
      end if;
      if taken + change > bound then
        raise exception 'the app would pass its quota of %', the_measure using errcode = 'QA001',
          detail = json_build_object('quota', the_measure, 'limit', bound, 'used', taken, 'requested', change)::text;
      end if;
    end if;
  end if;
  update app_usage set used = used + change
  where (app_id, sandbox_id, measure, period, part) = (
    select the_app, the_sandbox, the_measure, the_period, u.part from app_usage u
    where u.app_id = the_app and u.sandbox_id = the_sandbox and u.measure = the_measure and u.period = the_period
    limit 1 for update skip locked);
  if found then return; end if;
  loop
    insert into app_usage (app_id, sandbox_id, measure, period, part, used)
    values (the_app, the_sandbox, the_measure, the_period, floor(random() * 2147483647), change)
    on conflict do nothing;
    exit when found;
  end loop;
end $$;

create function files_counted() returns trigger language plpgsql as $$
begin
  perform app_use(a.app_id, a.sandbox_id, 'file_bytes', a.bytes) from (
    select app_id, sandbox_id, sum(size)::bigint as bytes from added group by app_id, sandbox_id) a;
  return null;
end $$;
create trigger files_counted after insert on files referencing new table as added
  for each statement execute function files_counted();

-- Of a sandbox that goes as a whole there is nothing left to count.
create function files_given_back() returns trigger language plpgsql as $$
begin
  perform app_use(g.app_id, g.sandbox_id, 'file_bytes', -g.bytes) from (
    select app_id, sandbox_id, sum(size)::bigint as bytes from gone group by app_id, sandbox_id) g
  where exists (select 1 from sandboxes s where s.app_id = g.app_id and s.id = g.sandbox_id);
  return null;
end $$;
create trigger files_given_back after delete on files referencing old table as gone
  for each statement execute function files_given_back();

-- A document knows its sandbox by itself: when its source goes, it is too late to ask there.
alter table knowledge_documents add column sandbox_id uuid;
update knowledge_documents d set sandbox_id = s.sandbox_id
  from knowledge_sources s where s.app_id = d.app_id and s.id = d.source_id;
alter table knowledge_documents alter column sandbox_id set not null;

create function place_document() returns trigger language plpgsql as $$
begin
  select s.sandbox_id into new.sandbox_id from knowledge_sources s
  where s.app_id = new.app_id and s.id = new.source_id;
  return new;
end $$;
create trigger knowledge_documents_placed before insert on knowledge_documents
  for each row execute function place_document();

create function documents_counted() returns trigger language plpgsql as $$
begin
  perform app_use(a.app_id, a.sandbox_id, 'documents', a.documents) from (
    select app_id, sandbox_id, count(*) as documents from added group by app_id, sandbox_id) a;
  return null;
end $$;
create trigger knowledge_documents_counted after insert on knowledge_documents referencing new table as added
  for each statement execute function documents_counted();

create function documents_given_back() returns trigger language plpgsql as $$
begin
  perform app_use(g.app_id, g.sandbox_id, 'documents', -g.documents) from (
    select app_id, sandbox_id, count(*) as documents from gone group by app_id, sandbox_id) g
  where exists (select 1 from sandboxes s where s.app_id = g.app_id and s.id = g.sandbox_id);
  return null;
end $$;
create trigger knowledge_documents_given_back after delete on knowledge_documents referencing old table as gone
  for each statement execute function documents_given_back();

create function sandboxes_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform app_use(new.app_id, '00000000-0000-0000-0000-000000000000', 'sandboxes', 1);
  elsif exists (
    select 1 from sandboxes s where s.app_id = old.app_id and s.id = '00000000-0000-0000-0000-000000000000') then
    perform app_use(old.app_id, '00000000-0000-0000-0000-000000000000', 'sandboxes', -1);
  end if;
  return null;
end $$;
create trigger sandboxes_counted after insert on sandboxes for each row
  when (new.id <> '00000000-0000-0000-0000-000000000000') execute function sandboxes_counted();
create trigger sandboxes_given_back after delete on sandboxes for each row
  when (old.id <> '00000000-0000-0000-0000-000000000000') execute function sandboxes_counted();

insert into app_usage (app_id, sandbox_id, measure, period, part, used)
  select app_id, sandbox_id, 'file_bytes', date 'epoch', 0, sum(size) from files group by app_id, sandbox_id
  union all
  select app_id, sandbox_id, 'documents', date 'epoch', 0, count(*) from knowledge_documents group by app_id, sandbox_id
  union all
  select app_id, '00000000-0000-0000-0000-000000000000', 'sandboxes', date 'epoch', 0, count(*) from sandboxes
  where id <> '00000000-0000-0000-0000-000000000000' group by app_id;

-- What was changed, by whom and how it ended. No foreign keys: an entry outlives what it tells of.
create table audit_entries (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('user', 'secret_key', 'publishable_key', 'developer')),
  actor_id uuid not null,
  credential text not null,
  action text not null,
  method text not null,
  route text not null,
  resource text,
  -- Null while the change is under way, and for ever when the process died over it.
  status smallint,
  request_id text not null,
  address text,
  primary key (app_id, id)
);
create index audit_entries_newest on audit_entries (app_id, sandbox_id, at desc, id desc);
create index audit_entries_at on audit_entries (at);

-- Who used what on which day (UTC).
create table credential_uses (
  app_id uuid not null,
  sandbox_id uuid not null,
  day date not null,
  kind text not null,
  credential_id uuid not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  requests bigint not null,
  refused bigint not null,
  primary key (app_id, sandbox_id, day, kind, credential_id)
);
create index credential_uses_day on credential_uses (day);
alter table api_keys add column last_used_at timestamptz;

-- For /metrics: what is under way, and since when.
create index extractions_running on extractions (created_at) where state = 'running';
create index crawls_unfinished on crawls (created_at) where finished_at is null;
