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
  -- From then on the entry does not exist, whether it has been swept or not.
  expires_at timestamptz,
  primary key (app_id, user_id, key),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
) with (fillfactor = 85);
create index kv_entries_newest on kv_entries (app_id, sandbox_id, created_at desc, id desc);
-- A user's own list is read piece by piece.
create index kv_entries_of_user on kv_entries (app_id, user_id, created_at desc, id desc);
create index kv_entries_keys on kv_entries (app_id, sandbox_id, key);
-- The sweep takes the entries of all apps; a total leaves out the expired ones of its scope.
create index kv_entries_expiry on kv_entries (expires_at) where expires_at is not null;
create index kv_entries_expired on kv_entries (app_id, sandbox_id, expires_at) where expires_at is not null;

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
    -- Expired entries need not wait for the sweep.
    delete from kv_entries e using (
      select x.key from kv_entries x
      where x.app_id = the_app and x.user_id = the_user and x.expires_at <= now() for update skip locked) x
    where e.app_id = the_app and e.user_id = the_user and e.key = x.key;
    if found then
      perform kv_use(the_app, the_user, change);
      return;
    end if;
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

-- Changes of entries, for `kv_watch`. They are logged only for users whose entries are watched, or were within the last
-- hour. `position` is the last one given: a writer holds the row until it commits, so positions are committed in order.
-- It starts at the microseconds since 1970, so a log that ended and began again continues after its old positions.
create table kv_watches (
  app_id uuid not null,
  user_id uuid not null,
  position bigint not null,
  -- Changes up to here are no longer kept.
  kept_after bigint not null,
  watched_until timestamptz not null,
  primary key (app_id, user_id),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
) with (fillfactor = 50);
create index kv_watches_expiry on kv_watches (watched_until);

create table kv_changes (
  app_id uuid not null,
  user_id uuid not null,
  position bigint not null,
  kind text not null check (kind in ('put', 'delete', 'expire')),
  key text collate "C" not null,
  entry_id uuid not null,
  version bigint not null,
  -- Of a put, unless it is long; then readers take it from the entry, while that is still in this state.
  value text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  primary key (app_id, user_id, position),
  foreign key (app_id, user_id) references kv_watches (app_id, user_id) on delete cascade
);

-- Users are taken in one order, so that no two statements wait for each other.
create function kv_log() returns trigger language plpgsql as $$
declare
  changes_max constant bigint := 1000;
  value_bytes_max constant integer := 65536;
  watched record;
  last bigint;
begin
  for watched in
    select c.app_id, c.user_id, count(*) as changes from changed c
    join kv_watches w on w.app_id = c.app_id and w.user_id = c.user_id
    where tg_argv[0] = 'put' or exists (select 1 from users u where u.app_id = c.app_id and u.id = c.user_id)
    group by c.app_id, c.user_id order by c.app_id, c.user_id
  loop
    update kv_watches
    set position = position + watched.changes, kept_after = greatest(kept_after, position + watched.changes - changes_max)
    where app_id = watched.app_id and user_id = watched.user_id returning position into last;
    continue when not found;
    insert into kv_changes (app_id, user_id, position, kind, key, entry_id, version, value, created_at, updated_at, expires_at)
    select c.app_id, c.user_id, last - watched.changes + row_number() over (order by c.key),
      case when tg_argv[0] = 'delete' and c.expires_at <= now() then 'expire' else tg_argv[0] end,
      c.key, c.id, c.version,
      case when tg_argv[0] = 'put' and octet_length(c.value) <= value_bytes_max then c.value end,
      c.created_at, c.updated_at, c.expires_at
    from changed c where c.app_id = watched.app_id and c.user_id = watched.user_id;
    delete from kv_changes
    where app_id = watched.app_id and user_id = watched.user_id and position <= last - changes_max;
    perform pg_notify('quarry_changes', 'kv/' || watched.app_id || '/' || watched.user_id);
  end loop;
  return null;
end $$;
create trigger kv_log_added after insert on kv_entries referencing new table as changed
  for each statement execute function kv_log('put');
create trigger kv_log_overwritten after update on kv_entries referencing new table as changed
  for each statement execute function kv_log('put');
create trigger kv_log_removed after delete on kv_entries referencing old table as changed
  for each statement execute function kv_log('delete');

-- Streams of a log that has ended end too.
create function kv_watch_ended() returns trigger language plpgsql as $$
begin
  perform pg_notify('quarry_changes', 'kv/' || old.app_id || '/' || old.user_id);
  return null;
end $$;
create trigger kv_watches_ended after delete on kv_watches for each row execute function kv_watch_ended();
