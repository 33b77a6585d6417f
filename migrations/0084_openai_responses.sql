-- Responses of a model for OpenAI's clients, which are kept for 30 days.

create table openai_responses (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- The user who asked; null for keys and developers.
  user_id uuid,
  -- The response that it continues. It may be gone.
  previous_id uuid,
  -- The messages of the request.
  input jsonb not null,
  -- As it was returned.
  response jsonb not null,
  -- The documents whose passages the model has read: only those who see all of them see the response.
  document_ids uuid[] not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index openai_responses_space on openai_responses (app_id, sandbox_id);
create index openai_responses_user on openai_responses (app_id, user_id);
create index openai_responses_expiry on openai_responses (expires_at);
