-- Addresses are the same if they differ only in the case of ASCII letters. The index of 0.1.0, which folds as the
-- database's locale does, stays for processes of that release.
alter table users add column email_folded text generated always as (lower(email collate "C")) stored;
create unique index users_email_folded on users (app_id, sandbox_id, email_folded) where email_folded is not null;
