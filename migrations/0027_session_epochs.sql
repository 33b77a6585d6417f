-- Everything that a user signs in with belongs to an epoch of that user. A change of the password, or the end of all
-- sessions, begins the next one, and what belongs to an earlier one is over, also what is made in that moment.
alter table users add column session_epoch integer not null default 0;
alter table refresh_tokens add column session_epoch integer not null default 0;
alter table personal_tokens add column session_epoch integer not null default 0;
alter table console_user_sessions add column session_epoch integer not null default 0;
drop trigger users_changed on users;
create trigger users_changed after update of org_id, org_role, session_epoch or delete on users
  for each statement execute function announce_tenancy_change();
