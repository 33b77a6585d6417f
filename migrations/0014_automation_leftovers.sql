-- What a run sleeps for, when that is a timer alone: {node_id, command_id, timer_id, attempt}. Then many timers fire in
-- one statement, and no run has to be read for it.
alter table automation_runs add column wake_timer json;

-- The states that a run's streams have shown, oldest first, so that a reader that comes back is brought what it missed:
-- each with the version that it began, its status, when, and until when a claim held. The rest of a run does not change,
-- or only with its end. Version 1 is the run as it was made.
alter table automation_runs add column changes jsonb not null default '[]';

-- Adds a state to them; only the newest 100 are kept. A run worked by its graph has three at most.
create function note_change(changes jsonb, version bigint, status text, at timestamptz, lease_until timestamptz)
returns jsonb language sql stable as $$
  select case when jsonb_array_length(changes) >= 100 then changes - 0 else changes end
    || jsonb_build_object('version', version, 'status', status, 'at', at, 'lease_until', lease_until)
$$;

-- An automation outlives the user or agent that it runs as: it is paused and remembers why, because with neither set it
-- would run with the rights of the app.
alter table automations add column identity_gone text check (identity_gone in ('user', 'agent'));
alter table automations drop constraint automations_app_id_run_as_user_id_fkey;
alter table automations drop constraint automations_app_id_run_as_agent_id_fkey;
alter table automations
  add foreign key (app_id, run_as_user_id) references users (app_id, id),
  add foreign key (app_id, run_as_agent_id) references agents (app_id, id);
create function pause_automations() returns trigger language plpgsql as $$
begin
  update automations set status = case status when 'running' then 'paused' else status end, identity_gone = tg_argv[0],
    run_as_user_id = null, run_as_agent_id = null, next_tick_at = null, updated_at = now()
  where app_id = old.app_id and (tg_argv[0] = 'user' and run_as_user_id = old.id
    or tg_argv[0] = 'agent' and run_as_agent_id = old.id);
  return old;
end $$;
create trigger pause_automations before delete on users for each row execute function pause_automations('user');
create trigger pause_automations before delete on agents for each row execute function pause_automations('agent');
