-- What belongs to a user, an agent or a team is found when they are deleted, without reading all rows of the app.
create index extractions_user on extractions (app_id, user_id) where user_id is not null;
create index extractions_team on extractions (app_id, team_id) where team_id is not null;
create index extractions_agent on extractions (app_id, agent_id) where agent_id is not null;
create index threads_user on threads (app_id, user_id) where user_id is not null;
create index threads_team on threads (app_id, team_id) where team_id is not null;
