-- Key-value storage: small strings that belong to one user.
create table kv_entries (
  app_id uuid not null,
  user_id uuid not null,
  -- Byte order: the prefix filter is a range, and a key is compared as what it is.
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
create index kv_entries_keys on kv_entries (app_id, sandbox_id, key);

-- How many entries an app has, so that a list's total costs nothing. The number is the sum of parts: a write takes any
-- part that nobody else is writing, so writers never wait for each other; busy apps grow up to 64 parts.
create table kv_counters (
  app_id uuid not null,
  sandbox_id uuid not null,
  part smallint not null,
  entries bigint not null,
  primary key (app_id, sandbox_id, part)
) with (fillfactor = 50);

-- How many bytes (keys and values) a user stores. The user's quota is dealt out to the parts as allowances whose sum
-- it is: a write that fits into the allowance of a part that nobody else is writing needs no look at the others. Only
-- when none does are all parts locked, added up exactly, and the rest of the quota dealt out anew.
create table kv_usage (
  app_id uuid not null,
  user_id uuid not null,
  part smallint not null,
  bytes bigint not null,
  allowance bigint not null,
  -- The quota that the allowances were dealt from; they are dealt anew when the setting has changed.
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

-- Books `change` bytes on the user. Raises QK001 when that would pass the quota that the statement has set in
-- quarry.kv_user_bytes_max (unset: no bound). What makes the entry smaller always passes.
create function kv_use(the_app uuid, the_user uuid, change bigint) returns void language plpgsql as $$
declare
  parts constant integer := 16;
  the_quota bigint := coalesce(nullif(current_setting('quarry.kv_user_bytes_max', true), '')::bigint, 1::bigint << 60);
  total bigint;
begin
  -- The part of this connection, once the user has as many: one look, one write.
  update kv_usage set bytes = bytes + change
  where app_id = the_app and user_id = the_user and part = pg_backend_pid() % parts
    and (change <= 0 or (quota = the_quota and bytes + change <= allowance));
  if found then return; end if;

  -- Any part that nobody is writing. Most users have one.
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

  -- Part 0 first: whoever deals anew holds it, so the next statement sees every part there is.
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

create function kv_entry_added() returns trigger language plpgsql as $$
begin
  perform kv_use(new.app_id, new.user_id, octet_length(new.key) + octet_length(new.value));
  perform kv_count(new.app_id, new.sandbox_id, 1);
  return null;
end $$;
create trigger kv_entries_added after insert on kv_entries for each row execute function kv_entry_added();

create function kv_entry_resized() returns trigger language plpgsql as $$
begin
  perform kv_use(new.app_id, new.user_id, octet_length(new.value) - octet_length(old.value));
  return null;
end $$;
create trigger kv_entries_resized after update of value on kv_entries for each row
  when (octet_length(old.value) <> octet_length(new.value)) execute function kv_entry_resized();

-- By statement, not by row: deleting a user removes all their entries at once.
create function kv_entries_gone() returns trigger language plpgsql as $$
begin
  perform kv_use(g.app_id, g.user_id, -g.bytes) from (
    select app_id, user_id, sum(octet_length(key) + octet_length(value))::bigint as bytes
    from gone group by app_id, user_id) g
  where exists (select 1 from users u where u.app_id = g.app_id and u.id = g.user_id);
  perform kv_count(g.app_id, g.sandbox_id, -g.entries) from (
    select app_id, sandbox_id, count(*) as entries from gone group by app_id, sandbox_id) g;
  return null;
end $$;
create trigger kv_entries_removed after delete on kv_entries referencing old table as gone
  for each statement execute function kv_entries_gone();

-- Runs after the cascades of the foreign keys (triggers of one event run in the order of their names).
create function kv_counters_gone() returns trigger language plpgsql as $$
begin
  delete from kv_counters where app_id = old.app_id and sandbox_id = old.id;
  return null;
end $$;
create trigger sandboxes_kv_counters_gone after delete on sandboxes for each row execute function kv_counters_gone();

-- Substring search over users without an extension: an inverted index over hashes of all one, two and three letter
-- pieces of e-mail and name. The app is part of the hash, so an app's search never meets another's users.
create function text_pieces(the_app uuid, the_text text, shortest integer, longest integer) returns bigint[]
language sql immutable parallel safe cost 10000 as $$
  select coalesce(array_agg(distinct hashtextextended(substr(lower(the_text), start, size), uuid_hash_extended(the_app, size))), '{}')
  from generate_series(shortest, longest) size, generate_series(1, length(the_text) - size + 1) start
$$;
create index users_search on users using gin (
  text_pieces(app_id, coalesce(email, '') || chr(10) || coalesce(name, ''), 1, 3)) with (fastupdate = off);
