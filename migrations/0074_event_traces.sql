-- An event keeps the trace of the change that it reports, so that runs and deliveries that follow stay in it.
alter table events add column traceparent text;

-- The trace of this transaction; null without tracing.
create function cause_traceparent() returns text language sql stable as $$
  select nullif(current_setting('quarry.traceparent', true), '')
$$;

create or replace function emit_event(
  app uuid, sandbox uuid, event_name text, event_payload json,
  org uuid, team uuid, owner_user uuid, agent uuid, about_kind text, about_id uuid, tree uuid, event_depth integer
) returns void language plpgsql as $$
declare
  event_id constant uuid := new_uuid();
begin
  if not exists (select 1 from automations a
      where a.app_id = app and a.sandbox_id = sandbox and a.trigger = event_name
        and a.type = 'trigger' and a.status = 'running')
    and not event_is_heard(app, sandbox, event_name)
    and (about_id is null or not exists (select 1 from automation_run_children c
      where c.app_id = app and c.child_kind = about_kind and c.child_id = about_id)) then
    return;
  end if;
  -- While an app or a sandbox is deleted, no listener is left.
  if not exists (select 1 from sandboxes s where s.app_id = app and s.id = sandbox) then
    return;
  end if;
  insert into events (app_id, id, sandbox_id, name, payload, org_id, team_id, user_id, agent_id, subject_kind, subject_id,
    tree_id, depth, traceparent)
  values (app, event_id, sandbox, event_name, event_payload, org, team, owner_user, agent, about_kind, about_id,
    tree, event_depth, cause_traceparent());
  perform add_job('dispatch_event', json_strip_nulls(json_build_object('appId', app, 'eventId', event_id,
    'traceparent', cause_traceparent())));
end $$;
