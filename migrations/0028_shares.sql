-- What a space (production or one sandbox) and each caller in it hold, so that neither uses up another's share.

-- `holder` is the caller. Records from before this migration expire within a day; they count as those of the app's keys,
-- and so do those of processes of 0.1.0, which do not set the columns.
alter table idempotency_records
  add column sandbox_id uuid not null default '00000000-0000-0000-0000-000000000000',
  add column holder text not null default 'server';

-- The records of each space, and of each caller in it.
drop table idempotency_usage;
create table idempotency_usage (
  app_id uuid not null,
  sandbox_id uuid not null,
  records bigint not null,
  bytes bigint not null,
  primary key (app_id, sandbox_id)
) with (fillfactor = 50);
create table idempotency_holders (
  app_id uuid not null,
  sandbox_id uuid not null,
  holder text not null,
  records bigint not null,
  bytes bigint not null,
  primary key (app_id, sandbox_id, holder)
) with (fillfactor = 50);

create or replace function idempotency_counted() returns trigger language plpgsql as $$
declare
  changed idempotency_records;
  more_records constant bigint := case tg_op when 'INSERT' then 1 when 'DELETE' then -1 else 0 end;
  more_bytes bigint;
begin
  if tg_op = 'DELETE' then
    changed := old;
    more_bytes := -old.bytes;
  else
    changed := new;
    more_bytes := new.bytes - case tg_op when 'UPDATE' then old.bytes else 0 end;
  end if;
  -- Every transaction takes the row of the space first, so two of them never wait for each other.
  insert into idempotency_usage as u (app_id, sandbox_id, records, bytes)
  values (changed.app_id, changed.sandbox_id, more_records, more_bytes)
  on conflict (app_id, sandbox_id) do update
    set records = u.records + excluded.records, bytes = u.bytes + excluded.bytes;
  insert into idempotency_holders as h (app_id, sandbox_id, holder, records, bytes)
  values (changed.app_id, changed.sandbox_id, changed.holder, more_records, more_bytes)
  on conflict (app_id, sandbox_id, holder) do update
    set records = h.records + excluded.records, bytes = h.bytes + excluded.bytes;
  if tg_op = 'DELETE' then
    delete from idempotency_holders h
    where h.app_id = changed.app_id and h.sandbox_id = changed.sandbox_id and h.holder = changed.holder
      and h.records <= 0;
  end if;
  return null;
end $$;

insert into idempotency_usage
select app_id, sandbox_id, count(*), sum(bytes) from idempotency_records group by app_id, sandbox_id;
insert into idempotency_holders
select app_id, sandbox_id, holder, count(*), sum(bytes) from idempotency_records group by app_id, sandbox_id, holder;

drop index uploads_unfinished;
create index uploads_unfinished on uploads (app_id, sandbox_id) where finished_at is null;
