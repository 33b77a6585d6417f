-- How long ended runs are kept: {days, runs, failed_days, failed_runs}. Null: as the app says, which by default is for ever.
alter table automations add column retention jsonb;
alter table apps add column run_retention jsonb;

-- The segment of the ledger which states that the run was removed.
alter table run_anchors add column removed_in bigint;
