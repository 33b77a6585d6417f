-- Names for programs, which quarry apply and export use instead of ids.
alter table knowledge_sources add column lookup_key text;
create unique index knowledge_sources_lookup_key on knowledge_sources (app_id, sandbox_id, lookup_key)
  where lookup_key is not null;
alter table webhooks add column lookup_key text;
create unique index webhooks_lookup_key on webhooks (app_id, sandbox_id, lookup_key) where lookup_key is not null;
