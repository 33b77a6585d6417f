-- The tree of a run: the runs that it has led to, by `run_automation` and by events, counted for all processes together.
-- A tree is named after its first run, whose own `tree_id` is null.
alter table automation_runs add column tree_id uuid;
create index automation_runs_of_tree on automation_runs (app_id, tree_id) where tree_id is not null;
alter table events add column tree_id uuid;

create table automation_run_trees (
  app_id uuid not null,
  id uuid not null,
  runs integer not null,
  primary key (app_id, id),
  foreign key (app_id, id) references automation_runs (app_id, id) on delete cascade
);
