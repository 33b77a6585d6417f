-- Deleting an org deletes its org-level automations; those of its teams and users only lose the org, as everywhere.
alter table automations drop constraint automations_app_id_org_id_fkey;
alter table automations
  add foreign key (app_id, org_id) references orgs (app_id, id) on delete set null (org_id);
create trigger delete_automations before delete on orgs
  for each row execute function delete_org_level_rows('automations', '');
