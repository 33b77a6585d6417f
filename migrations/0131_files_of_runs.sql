-- Files whose ids are in a run's payload or journal. `made`: the file goes with the run if the run's retention says so. A
-- row stays when the file is deleted.
create table automation_run_files (
  app_id uuid not null,
  run_id uuid not null,
  file_id uuid not null,
  made boolean not null default false,
  primary key (app_id, run_id, file_id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade
);
create index automation_run_files_of_file on automation_run_files (app_id, file_id);

-- What refers to a file that may go with its run.
create index extractions_file on extractions (app_id, file_id) where file_id is not null;
create index knowledge_versions_file on knowledge_versions (app_id, file_id) where file_id is not null;
create index knowledge_sync_items_file on knowledge_sync_items (app_id, file_id) where file_id is not null;
