-- Users who sign in elsewhere: the OpenID Connect issuers that an app trusts, and their accounts.

create table identity_issuers (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  issuer text not null,
  audience text not null,
  -- Null: found by discovery.
  jwks_url text,
  creates_users boolean not null,
  links_by_email boolean not null,
  -- Which claims name orgs, roles and teams, and what of the app each of their values means.
  claims jsonb not null,
  -- For signing in to the web console; the secret is wrapped by the root secret.
  client_id text,
  client_secret bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (app_id, id),
  unique (app_id, sandbox_id, issuer),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
);
create trigger identity_issuers_changed after update or delete on identity_issuers
  for each statement execute function announce_tenancy_change();

-- An account belongs to one user for good. Without a user, it was deleted, and is never created again.
create table external_accounts (
  app_id uuid not null,
  sandbox_id uuid not null,
  issuer text not null,
  subject text not null,
  user_id uuid,
  -- The mapped claims that were applied last, and when their token was issued.
  applied jsonb,
  applied_issued_at timestamptz,
  created_at timestamptz not null,
  primary key (app_id, sandbox_id, issuer, subject),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete set null (user_id)
);
create unique index external_accounts_user on external_accounts (app_id, user_id, issuer) where user_id is not null;
