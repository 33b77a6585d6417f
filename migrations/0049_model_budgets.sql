-- Budgets for language models, and how much of each is used.

create table model_budgets (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- Whose calls count together.
  subject text not null check (subject in ('app', 'sandbox', 'user', 'agent', 'automation', 'run')),
  -- Null for `app`, and if each subject has the budget for itself.
  subject_id uuid,
  period text not null check (period in ('day', 'month', 'total')),
  -- Beyond these, calls are refused.
  tokens bigint,
  cost bigint,
  -- Beyond these, an event is emitted.
  soft_tokens bigint,
  soft_cost bigint,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
) with (fillfactor = 80);
create index model_budgets_newest on model_budgets (app_id, sandbox_id, created_at desc, id desc);

create table model_budget_uses (
  app_id uuid not null,
  budget_id uuid not null,
  -- The nil uuid for the app.
  subject_id uuid not null,
  -- The first day (UTC) of the day or month; the epoch for `total`.
  period_start date not null,
  -- With what calls in progress have reserved.
  tokens bigint not null,
  cost bigint not null,
  -- When the event of the limit was emitted.
  soft_at timestamptz,
  hard_at timestamptz,
  updated_at timestamptz not null default now(),
  primary key (app_id, budget_id, subject_id, period_start),
  foreign key (app_id, budget_id) references model_budgets (app_id, id) on delete cascade
) with (fillfactor = 50);
create index model_budget_uses_oldest on model_budget_uses (updated_at);
