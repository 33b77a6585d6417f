-- Events about files, extractions, ingestions and sources, written by the database itself: in the transaction of the
-- change whatever code makes it, and only when an automation listens or a run waits. Payloads carry ids as clients
-- know them.

-- `fil_…`: the uuid in 22 base62 digits behind its prefix, as src/ids.ts writes it.
create function format_id(prefix text, id uuid) returns text language plpgsql immutable strict as $$
declare
  alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  hex constant text := replace(id::text, '-', '');
  rest numeric := 0;
  digits text := '';
begin
  for part in 0..3 loop
    rest := rest * 4294967296 + ('x' || lpad(substr(hex, part * 8 + 1, 8), 16, '0'))::bit(64)::bigint;
  end loop;
  for digit in 1..22 loop
    digits := substr(alphabet, (rest % 62)::integer + 1, 1) || digits;
    rest := div(rest, 62);
  end loop;
  return prefix || '_' || digits;
end $$;

-- A UUIDv7 (RFC 9562): 48 bits of milliseconds over random bits.
create function new_uuid() returns uuid language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;

create function emit_event(
  app uuid, sandbox uuid, event_name text, event_payload json,
  org uuid, team uuid, owner_user uuid, agent uuid, about_kind text, about_id uuid
) returns void language plpgsql as $$
declare
  event_id constant uuid := new_uuid();
begin
  if not exists (select 1 from automations a
      where a.app_id = app and a.sandbox_id = sandbox and a.trigger = event_name
        and a.type = 'trigger' and a.status = 'running')
    and (about_id is null or not exists (select 1 from automation_run_children c
      where c.app_id = app and c.child_kind = about_kind and c.child_id = about_id)) then
    return;
  end if;
  -- While an app or a sandbox is being deleted there is nobody left to tell.
  if not exists (select 1 from sandboxes s where s.app_id = app and s.id = sandbox) then
    return;
  end if;
  insert into events (app_id, id, sandbox_id, name, payload, org_id, team_id, user_id, agent_id, subject_kind, subject_id)
  values (app, event_id, sandbox, event_name, event_payload, org, team, owner_user, agent, about_kind, about_id);
  perform graphile_worker.add_job('dispatch_event', json_build_object('appId', app, 'eventId', event_id));
end $$;

create function emit_file_event() returns trigger language plpgsql as $$
begin
  perform emit_event(new.app_id, new.sandbox_id, case tg_op when 'INSERT' then 'file.created' else 'file.updated' end,
    json_strip_nulls(json_build_object('file', format_id('fil', new.id), 'filename', new.filename,
      'content_type', new.content_type, 'size', new.size, 'org', format_id('org', new.org_id),
      'team', format_id('team', new.team_id), 'user', format_id('usr', new.user_id),
      'agent', format_id('agt', new.agent_id))),
    new.org_id, new.team_id, new.user_id, new.agent_id, null, null);
  return null;
end $$;
create trigger files_created after insert on files for each row execute function emit_file_event();
create trigger files_updated after update on files for each row
  when (old.filename is distinct from new.filename or old.shared is distinct from new.shared
    or old.provider_metadata is distinct from new.provider_metadata)
  execute function emit_file_event();

create function emit_extraction_event() returns trigger language plpgsql as $$
begin
  perform emit_event(new.app_id, new.sandbox_id,
    case new.state when 'done' then 'extraction.completed' else 'extraction.failed' end,
    json_strip_nulls(json_build_object('extraction', format_id('ext', new.id), 'kind', new.kind, 'state', new.state,
      'file', format_id('fil', new.file_id), 'url', new.url, 'failure_reason', new.failure_reason)),
    new.org_id, new.team_id, new.user_id, new.agent_id, 'extraction', new.id);
  return null;
end $$;
create trigger extractions_created after insert on extractions for each row
  when (new.state in ('done', 'failed')) execute function emit_extraction_event();
create trigger extractions_ended after update of state on extractions for each row
  when (old.state = 'running' and new.state in ('done', 'failed')) execute function emit_extraction_event();

create function emit_ingestion_event() returns trigger language plpgsql as $$
declare
  source knowledge_sources;
begin
  select * into source from knowledge_sources s where s.app_id = new.app_id and s.id = new.source_id;
  if not found then
    return null;
  end if;
  perform emit_event(new.app_id, source.sandbox_id, 'ingestion.' || new.status,
    json_strip_nulls(json_build_object('ingestion', format_id('cig', new.id), 'source', format_id('cso', new.source_id),
      'status', new.status, 'error', new.error)),
    source.org_id, source.team_id, source.user_id, source.agent_id, 'ingestion', new.id);
  return null;
end $$;
create trigger ingestions_ended after update of status on knowledge_ingestions for each row
  when (old.status is distinct from new.status and new.status in ('succeeded', 'failed'))
  execute function emit_ingestion_event();

create function emit_source_event() returns trigger language plpgsql as $$
declare
  source constant knowledge_sources := coalesce(new, old);
begin
  perform emit_event(source.app_id, source.sandbox_id,
    'knowledge_source.' || case tg_op when 'INSERT' then 'created' when 'UPDATE' then 'updated' else 'deleted' end,
    json_build_object('source', format_id('cso', source.id), 'type', source.type, 'state', source.state),
    source.org_id, source.team_id, source.user_id, source.agent_id, null, null);
  return null;
end $$;
create trigger sources_created_or_deleted after insert or delete on knowledge_sources for each row
  execute function emit_source_event();
create trigger sources_updated after update on knowledge_sources for each row
  when (old.payload is distinct from new.payload or old.metadata is distinct from new.metadata
    or old.state is distinct from new.state)
  execute function emit_source_event();
