-- Rate limits and quotas.

-- Attempts to sign in that failed, or that are `pending`. Counted in sliding windows, by all processes together.
create unlogged table sign_in_failures (
  bucket text not null,
  id uuid not null,
  at timestamptz not null,
  pending boolean not null default true,
  primary key (bucket, id)
);
create index sign_in_failures_at on sign_in_failures (at);

-- What is left of each credential's budget in each group of routes. A budget is a bucket of tokens that fills evenly by
-- the clock of this database. Processes charge it in batches, so it can be overdrawn.
create unlogged table rate_budgets (
  credential_id uuid not null,
  route_group text not null,
  tokens double precision not null,
  filled_at timestamptz not null,
  primary key (credential_id, route_group)
) with (fillfactor = 50);

-- Quotas bound what an app stores, in production and in each sandbox separately. Sandboxes are counted in production.
create table quota_defaults (
  measure text primary key,
  bound bigint not null
);

-- The operator's bound replaces the default. The app's own bound can only be tighter.
create table app_quotas (
  app_id uuid not null references apps (id) on delete cascade,
  measure text not null check (measure in ('file_bytes', 'documents', 'pages', 'tokens', 'sandboxes')),
  operator_bound bigint check (operator_bound >= 0),
  own_bound bigint check (own_bound >= 0),
  primary key (app_id, measure)
);

-- The usage is the sum of its parts. A write updates any part that no other transaction is writing, so writers never
-- wait for each other here. `period` is the day (UTC) for a measure with a daily bound, and 'epoch' for the others.
create table app_usage (
  app_id uuid not null,
  sandbox_id uuid not null,
  measure text not null check (measure in ('file_bytes', 'documents', 'pages', 'tokens', 'sandboxes')),
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
  select case when the_measure in ('pages', 'tokens') then (clock_timestamp() at time zone 'UTC')::date else date 'epoch' end
$$;

create function app_used(the_app uuid, the_sandbox uuid, the_measure text) returns bigint language sql volatile as $$
  select coalesce(sum(u.used), 0)::bigint from app_usage u
  where u.app_id = the_app and u.sandbox_id = the_sandbox and u.measure = the_measure
    and u.period = usage_period(the_measure)
$$;

-- Adds `change` to the usage of a period, without a check of the bound.
create function app_book(the_app uuid, the_sandbox uuid, the_measure text, the_period date, change bigint) returns void
language plpgsql as $$
begin
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

-- Adds `change` to the usage. Raises QA001 when that would exceed the bound; a negative change always passes. Far from
-- the bound no writer waits: the sum is read as committed. Within the last twentieth (or the last 4 GiB, 1,000 documents
-- or pages) writers take a lock in turn, so the bound is exact unless more than that is committed at the same moment.
create function app_use(the_app uuid, the_sandbox uuid, the_measure text, change bigint) returns void
language plpgsql as $$
declare
  the_period constant date :=
    case when the_measure in ('pages', 'tokens') then (clock_timestamp() at time zone 'UTC')::date else date 'epoch' end;
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
  perform app_book(the_app, the_sandbox, the_measure, the_period, change);
end $$;

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

