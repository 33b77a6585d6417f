-- Writers digest and link their entries themselves, because doing it in SQL took a third of an append. This is for those who
-- do not know the last link.
drop function link_run_entries(uuid, uuid, bytea, integer, integer, uuid[], text[], text[], text[], text[], text[], timestamptz);

-- The links, 32 bytes each, of entries that follow `after`, whose digests are given; of the last entry, when none follow.
-- Those that have no link yet come first.
create function link_run_entries(app uuid, run uuid, link bytea, linked integer, after integer, digests bytea)
  returns bytea language plpgsql stable as $$
declare
  state bytea := coalesce(link, decode(repeat('00', 32), 'hex'));
  links bytea := '';
  e record;
begin
  if linked < after then
    for e in select * from automation_run_entries a where a.app_id = app and a.run_id = run and a.sequence > linked
        and a.sequence <= after order by a.sequence loop
      state := run_entry_link(state, app, run, e.sequence, e.id, e.type, e.node_id, e.command_id, e.timer_id,
        e.record::text, e.created_at);
    end loop;
  end if;
  for i in 0..octet_length(digests) / 32 - 1 loop
    state := sha256(state || substr(digests, 32 * i + 1, 32));
    links := links || state;
  end loop;
  return case when links = '' then state else links end;
end $$;
