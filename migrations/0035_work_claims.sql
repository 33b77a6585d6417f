-- Which worker does the work outside of which node. Unlogged: without it, work that nobody does is only done again.
create unlogged table automation_work_claims (
  app_id uuid not null,
  run_id uuid not null,
  command_id text not null,
  worker text not null,
  primary key (app_id, run_id, command_id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);
