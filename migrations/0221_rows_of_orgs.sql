-- What belongs to an org is found when it is deleted, without reading all rows of the app.
create index configs_org on configs (app_id, org_id) where org_id is not null;
create index extractions_org on extractions (app_id, org_id) where org_id is not null;
create index threads_org on threads (app_id, org_id) where org_id is not null;
