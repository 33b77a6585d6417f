-- Writes of many requests share a statement, so the books are kept once for a statement and user, not once for a row.
-- Users are taken in one order, so that no two statements wait for each other.
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

drop trigger kv_entries_added on kv_entries;
drop trigger kv_entries_resized on kv_entries;
create trigger kv_entries_added after insert on kv_entries referencing new table as added
  for each statement execute function kv_entries_added();
create trigger kv_entries_resized after update on kv_entries
  referencing old table as before_update new table as after_update
  for each statement execute function kv_entries_resized();
drop function kv_entry_added();
drop function kv_entry_resized();
