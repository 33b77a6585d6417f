-- Key-value storage: small strings that belong to one user.
create table kv_entries (
  app_id uuid not null,
  user_id uuid not null,
  -- Byte order: the prefix filter is a range, and keys compare byte by byte.
  key text collate "C" not null,
  sandbox_id uuid not null,
  id uuid not null,
  value text not null,
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, user_id, key),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
) with (fillfactor = 85);
create index kv_entries_newest on kv_entries (app_id, sandbox_id, created_at desc, id desc);
-- A user's own list is read piece by piece.
create index kv_entries_of_user on kv_entries (app_id, user_id, created_at desc, id desc);
create index kv_entries_keys on kv_entries (app_id, sandbox_id, key);

-- The number of entries of an app, so that a list need not count for its total. It is the sum of its parts: a write
-- updates any part that no other transaction is writing, so writers never wait for each other. Busy apps grow to 64 parts.
create table kv_counters (
  app_id uuid not null,
  sandbox_id uuid not null,
  part smallint not null,
  entries bigint not null,
  primary key (app_id, sandbox_id, part)
) with (fillfactor = 50);

-- The bytes (keys and values) that a user stores. The parts share the user's quota as allowances: a write that fits into
-- the allowance of a part that no other transaction is writing need not read the others. Only when it fits into none are
-- all parts locked and summed, and the rest of the quota is shared out again.
create table kv_usage (
  app_id uuid not null,
  user_id uuid not null,
  part smallint not null,
  bytes bigint not null,
  allowance bigint not null,
  -- The quota that the allowances share. They are shared out again when the setting has changed.
  quota bigint not null,
  primary key (app_id, user_id, part),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
) with (fillfactor = 50);

create function kv_count(the_app uuid, the_sandbox uuid, change bigint) returns void language plpgsql as $$
begin
  update kv_counters set entries = entries + change
  where (app_id, sandbox_id, part) = (
    select the_app, the_sandbox, c.part from kv_counters c
    where c.app_id = the_app and c.sandbox_id = the_sandbox limit 1 for update skip locked);
  if found then return; end if;
  insert into kv_counters (app_id, sandbox_id, part, entries)
  values (the_app, the_sandbox, floor(random() * 64), change)
  on conflict (app_id, sandbox_id, part) do update set entries = kv_counters.entries + excluded.entries;
end $$;

-- Adds `change` bytes to the user's usage. Raises QK001 when that would exceed the quota that the statement has set in
-- quarry.kv_user_bytes_max (unset: no bound). A negative change always passes.
create function kv_use(the_app uuid, the_user uuid, change bigint) returns void language plpgsql as $$
declare
  parts constant integer := 16;
  the_quota bigint := coalesce(nullif(current_setting('quarry.kv_user_bytes_max', true), '')::bigint, 1::bigint << 60);
  total bigint;
begin
  -- The part of this connection, once the user has as many parts: one read, one write.
  update kv_usage set bytes = bytes + change
  where app_id = the_app and user_id = the_user and part = pg_backend_pid() % parts
    and (change <= 0 or (quota = the_quota and bytes + change <= allowance));
  if found then return; end if;

  -- Any part that no transaction is writing. Most users have one part.
  update kv_usage set bytes = bytes + change
  where (app_id, user_id, part) = (
    select the_app, the_user, u.part from kv_usage u
    where u.app_id = the_app and u.user_id = the_user
      and (change <= 0 or (u.quota = the_quota and u.bytes + change <= u.allowance))
    limit 1 for update skip locked);
  if found then return; end if;

  if change <= the_quota then
    insert into kv_usage (app_id, user_id, part, bytes, allowance, quota)
    values (the_app, the_user, 0, change, the_quota, the_quota) on conflict do nothing;
    if found then return; end if;
  end if;

  -- Part 0 first: a transaction that shares out the quota holds it, so the next statement sees every part.
  perform 1 from kv_usage where app_id = the_app and user_id = the_user and part = 0 for update;
  select coalesce(sum(locked.bytes), 0) + change into total from (
    select u.bytes from kv_usage u where u.app_id = the_app and u.user_id = the_user order by u.part for update) locked;
  if change > 0 and total > the_quota then
    raise exception 'the user would store % bytes', total using errcode = 'QK001';
  end if;
  insert into kv_usage (app_id, user_id, part, bytes, allowance, quota)
  select the_app, the_user, p, 0, 0, the_quota from generate_series(0, parts - 1) p on conflict do nothing;
  update kv_usage set
    bytes = bytes + case when part = 0 then change else 0 end,
    allowance = bytes + case when part = 0 then change else 0 end + div(the_quota - total, parts),
    quota = the_quota
  where app_id = the_app and user_id = the_user;
end $$;

-- One statement writes the entries of many requests, so the usage is updated once per statement and user, not once per
-- row. Users are taken in one order, so that no two statements wait for each other.
create function kv_entries_added() returns trigger language plpgsql as $$
begin
  perform kv_use(a.app_id, a.user_id, a.bytes) from (
    select app_id, user_id, sum(octet_length(key) + octet_length(value))::bigint as bytes
    from added group by app_id, user_id order by app_id, user_id) a;
  perform kv_count(a.app_id, a.sandbox_id, a.entries) from (
    select app_id, sandbox_id, count(*) as entries from added
    group by app_id, sandbox_id order by app_id, sandbox_id) a;
  return null;
end $$;

create function kv_entries_resized() returns trigger language plpgsql as $$
begin
  perform kv_use(c.app_id, c.user_id, c.change) from (
    select app_id, user_id, sum(bytes)::bigint as change from (
      select app_id, user_id, octet_length(value)::bigint as bytes from after_update
      union all
      select app_id, user_id, -octet_length(value)::bigint from before_update) sizes
    group by app_id, user_id having sum(bytes) <> 0 order by app_id, user_id) c;
  return null;
end $$;
create trigger kv_entries_added after insert on kv_entries referencing new table as added
  for each statement execute function kv_entries_added();
create trigger kv_entries_resized after update on kv_entries
  referencing old table as before_update new table as after_update
  for each statement execute function kv_entries_resized();

-- By statement, because deleting a user deletes all their entries. When a whole sandbox is deleted, its counters are gone
-- before its entries, and counting those would bring the counters back.
create function kv_entries_gone() returns trigger language plpgsql as $$
begin
  perform kv_use(g.app_id, g.user_id, -g.bytes) from (
    select app_id, user_id, sum(octet_length(key) + octet_length(value))::bigint as bytes
    from gone group by app_id, user_id) g
  where exists (select 1 from users u where u.app_id = g.app_id and u.id = g.user_id);
  perform kv_count(g.app_id, g.sandbox_id, -g.entries) from (
    select app_id, sandbox_id, count(*) as entries from gone group by app_id, sandbox_id) g
  where exists (select 1 from sandboxes s where s.app_id = g.app_id and s.id = g.sandbox_id);
  return null;
end $$;
create trigger kv_entries_removed after delete on kv_entries referencing old table as gone
  for each statement execute function kv_entries_gone();

-- Runs after the cascades of the foreign keys: triggers of one event run in the order of their names.
create function kv_counters_gone() returns trigger language plpgsql as $$
begin
  delete from kv_counters where app_id = old.app_id and sandbox_id = old.id;
  return null;
end $$;
create trigger sandboxes_kv_counters_gone after delete on sandboxes for each row execute function kv_counters_gone();
