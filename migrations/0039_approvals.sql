-- Questions of runs to people (docs/approvals.md). A row is written with the run's signal_waiting entry and closed with
-- its signal_received or signal_timed_out entry.
create table approvals (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  automation_id uuid not null,
  run_id uuid not null,
  node_id text not null,
  command_id text not null,
  attempt integer not null,
  status text not null default 'waiting' check (status in ('waiting', 'answered', 'expired', 'cancelled')),
  question text not null,
  form json not null,
  -- Who may answer. Without foreign keys: a deleted user or team is one that nobody is or belongs to.
  users uuid[] not null,
  teams uuid[] not null,
  roles text[] not null,
  -- The organisation of the roles.
  org_id uuid,
  -- The user who invoked the run, if they may not answer.
  excluded_user_id uuid,
  expires_at timestamptz,
  answer json,
  answered_by text,
  closed_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, run_id) references automation_runs (app_id, id) on delete cascade,
  foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id)
);
create unique index approvals_of_command on approvals (app_id, run_id, command_id, attempt);
create index approvals_newest on approvals (app_id, sandbox_id, status, id desc);
create index approvals_org on approvals (app_id, org_id);

-- Links by which a person without an account answers. The token is signed, so none is stored.
create table approval_links (
  app_id uuid not null,
  id uuid not null,
  approval_id uuid not null,
  sent_to text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, approval_id) references approvals (app_id, id) on delete cascade
);
create index approval_links_of_approval on approval_links (app_id, approval_id);

-- What a waiting run waits for.
alter table automation_runs add column waiting_for json;

-- The runs that repeat or continue another.
create index automation_runs_retries on automation_runs (app_id, retried_from) where retried_from is not null;
