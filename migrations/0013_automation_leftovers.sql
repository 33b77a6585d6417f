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
