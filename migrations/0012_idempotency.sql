-- Requests with an Idempotency-Key, and their first responses, for 24 hours.

-- `digest` names sandbox, caller, method, path and key. A row without a status belongs to the request that holds its
-- claim; a claim that is not renewed ends. No reference to a tenant: requests of a developer name no app (the nil uuid).
create table idempotency_records (
  app_id uuid not null,
  digest bytea not null,
  -- Of the request's query and body; null until a streamed body has arrived.
  request_digest bytea,
  claim uuid not null,
  claimed_until timestamptz not null,
  status smallint,
  headers jsonb,
  -- Wrapped.
  body bytea,
  bytes bigint not null default 0,
  expires_at timestamptz not null,
  primary key (app_id, digest)
);
create index idempotency_records_expiry on idempotency_records (expires_at);

-- The records of each app, and the bytes of their responses.
create table idempotency_usage (
  app_id uuid primary key,
  records bigint not null,
  bytes bigint not null
) with (fillfactor = 50);

create function idempotency_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into idempotency_usage as u (app_id, records, bytes) values (new.app_id, 1, new.bytes)
    on conflict (app_id) do update set records = u.records + 1, bytes = u.bytes + excluded.bytes;
  elsif tg_op = 'UPDATE' then
    update idempotency_usage set bytes = bytes + new.bytes - old.bytes where app_id = new.app_id;
  else
    update idempotency_usage set records = records - 1, bytes = bytes - old.bytes where app_id = old.app_id;
  end if;
  return null;
end $$;
create trigger idempotency_records_added after insert on idempotency_records
  for each row execute function idempotency_counted();
create trigger idempotency_records_resized after update of bytes on idempotency_records
  for each row when (new.bytes <> old.bytes) execute function idempotency_counted();
create trigger idempotency_records_removed after delete on idempotency_records
  for each row execute function idempotency_counted();
