-- A verification looks up the signed statements about the records that it misses. It read all of them on every page.

-- What a statement about retention names: the time before which entries are removed. Null for text of another form.
create function ledger_removed_before(detail text) returns text language sql immutable parallel safe as $$
  select substring(detail from '"before":"([^"]*)"')
$$;

-- What a statement about a deletion names: automations, or the sandbox whose automations are all removed.
create function ledger_removed(detail text) returns text[] language sql immutable parallel safe as $$
  select case when detail like '%"automations":null%' then array[substring(detail from '"id":"([^"]*)"')]
    else string_to_array(translate(substring(detail from '"automations":\[([^]]*)\]'), '"', ''), ',') end
$$;

create index ledger_segments_retentions on ledger_segments
  (app_id, sandbox_id, (ledger_removed_before(detail)) collate "C") where kind = 'retention';
create index ledger_segments_deletions on ledger_segments using gin (ledger_removed(detail)) where kind = 'deletion';
drop index ledger_segments_notes;
