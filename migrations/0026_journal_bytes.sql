-- The bytes of a run's journal entries, which are bounded: a worker that continues the run reads them all. Entries from
-- before this migration do not count.
alter table automation_runs add column journal_bytes bigint not null default 0;
