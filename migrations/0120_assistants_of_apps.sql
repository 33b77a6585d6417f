-- Whether assistants may connect to the app by OAuth, where the installation has switched this on.
alter table apps add column assistants boolean not null default true;
