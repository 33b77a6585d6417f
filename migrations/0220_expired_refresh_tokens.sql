-- Expired sessions are found without reading those of all apps.
create index refresh_tokens_expiry on refresh_tokens (expires_at);
