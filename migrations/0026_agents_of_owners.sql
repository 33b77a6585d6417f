-- A lookup key is unique for each owner: that an agent which the caller does not see has it is no reason to refuse it.
drop index agents_lookup_key;
create unique index agents_lookup_key on agents (app_id, sandbox_id, lookup_key,
  coalesce(team_id, user_id, org_id, '00000000-0000-0000-0000-000000000000')) where lookup_key is not null;
