-- The scopes of the key that wrote a version of a graph. Null: full rights, as all versions had before.
alter table automation_graphs add column scopes text[];
-- The scopes of the key that invoked a run which acts as its invoker. Null: not bounded by them.
alter table automation_runs add column scopes text[];
