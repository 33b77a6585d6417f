-- The agent that started a run from a node of its own, so that a retry acts as that agent again.
alter table automation_runs add column invoked_by_agent_id uuid;
