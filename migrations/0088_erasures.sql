-- Orders to erase a user, a document or a source, and what became of them.
create table erasures (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  subject_kind text not null check (subject_kind in ('user', 'document', 'source')),
  subject_id uuid not null,
  -- Whether the files that documents were read from are erased too. Those of a user always are.
  with_files boolean not null default false,
  status text not null default 'running' check (status in ('running', 'done')),
  -- How many rows of each kind were deleted, counted in the transactions that delete them.
  counts jsonb not null default '{}'::jsonb,
  -- Who outside received something of the subject. Null until it was looked up.
  receivers jsonb,
  -- What later steps need to know of rows that earlier ones delete. Emptied at the end.
  work jsonb not null default '{}'::jsonb,
  certificate jsonb,
  created_at timestamptz not null,
  completed_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create unique index erasures_running on erasures (app_id, subject_kind, subject_id) where status = 'running';
create index erasures_newest on erasures (app_id, sandbox_id, created_at desc, id desc);

-- The erasure that waits until the blob is gone.
alter table doomed_blobs add column erasure_id uuid;
create index doomed_blobs_of_erasure on doomed_blobs (app_id, erasure_id) where erasure_id is not null;

-- An erasure deletes runs by these.
create index automation_runs_invoked_by_user on automation_runs (app_id, invoked_by_user_id)
  where invoked_by_user_id is not null;
create index automation_runs_invoked_by_agent on automation_runs (app_id, invoked_by_agent_id)
  where invoked_by_agent_id is not null;
