-- Attempts to sign in that failed, or are `pending`: under way. Counted in sliding windows, over all processes.
drop table rate_counters;
create unlogged table sign_in_failures (
  bucket text not null,
  id uuid not null,
  at timestamptz not null,
  pending boolean not null default true,
  primary key (bucket, id)
);
create index sign_in_failures_at on sign_in_failures (at);

-- From where each user has signed in: strangers' failures do not keep them out there.
create table sign_in_addresses (
  app_id uuid not null,
  user_id uuid not null,
  address text not null,
  last_at timestamptz not null,
  primary key (app_id, user_id, address),
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create index sign_in_addresses_at on sign_in_addresses (last_at);
