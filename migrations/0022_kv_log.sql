-- Reads the changed entries once, not once for each watched user.
create or replace function kv_log() returns trigger language plpgsql as $$
declare
  changes_max constant bigint := 1000;
  value_bytes_max constant integer := 65536;
  watched record;
  last bigint;
begin
  for watched in
    select c.app_id, c.user_id, count(*) as changes, array_agg(row(c.*)::kv_entries order by c.key) as entries
    from changed c
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
    from unnest(watched.entries) c;
    delete from kv_changes
    where app_id = watched.app_id and user_id = watched.user_id and position <= last - changes_max;
    perform pg_notify('quarry_changes', 'kv/' || watched.app_id || '/' || watched.user_id);
  end loop;
  return null;
end $$;
