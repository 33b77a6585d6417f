-- Who may not answer an approval beside the one who invoked its run: those who invoked the runs that led to it.
alter table approvals add column excluded_users uuid[] not null default '{}';
