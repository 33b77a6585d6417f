-- Org-level files go with their org, as everything org-level does. Its logo is removed by a trigger of its own once the
-- org is gone: removing it here would change the very row that is being deleted.
create function delete_org_level_files() returns trigger language plpgsql as $$
begin
  delete from files where app_id = old.app_id and org_id = old.id
    and team_id is null and user_id is null and agent_id is null and id is distinct from old.logo_file_id;
  return old;
end $$;
create trigger delete_files before delete on orgs for each row execute function delete_org_level_files();

-- A source that somebody owns stays as well, and only loses its org.
alter table knowledge_sources drop constraint knowledge_sources_app_id_org_id_fkey;
alter table knowledge_sources
  add foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id);
create trigger delete_knowledge_sources before delete on orgs
  for each row execute function delete_org_level_rows('knowledge_sources', 'agent');

-- Of a sandbox that goes as a whole the counters are gone before its entries are: counting those would bring them back.
create or replace function kv_entries_gone() returns trigger language plpgsql as $$
begin
  perform kv_use(g.app_id, g.user_id, -g.bytes) from (
    select app_id, user_id, sum(octet_length(key) + octet_length(value))::bigint as bytes
    from gone group by app_id, user_id) g
  where exists (select 1 from users u where u.app_id = g.app_id and u.id = g.user_id);
  perform kv_count(g.app_id, g.sandbox_id, -g.entries) from (
    select app_id, sandbox_id, count(*) as entries from gone group by app_id, sandbox_id) g
  where exists (select 1 from sandboxes s where s.app_id = g.app_id and s.id = g.sandbox_id);
  return null;
end $$;
