-- The numbered log of events, for webhooks and event streams, and the webhooks that it is delivered to. `events` itself
-- is in 0011: an event is written in the transaction of its change.

-- The log of production or of a sandbox. `position` is the last one given. One transaction at a time gives positions to
-- events that are already committed, so positions become visible in their order, and no change waits for another one.
create table event_logs (
  app_id uuid not null,
  sandbox_id uuid not null,
  position bigint not null default 0,
  -- A stream cannot continue after an earlier position: events are deleted, or were not written.
  kept_after bigint not null default 0,
  -- Events are logged for streams until then.
  followed_until timestamptz not null default '-infinity',
  primary key (app_id, sandbox_id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade
) with (fillfactor = 50);

create table webhooks (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  url text not null,
  description text,
  -- Names of events, or `*` for all.
  events text[] not null,
  status text not null default 'active' check (status in ('active', 'paused')),
  paused_reason text check (paused_reason in ('request', 'failing', 'gone')),
  -- The first failure since the last success.
  failing_since timestamptz,
  -- Wrapped by the root secret.
  secret bytea not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  check ((status = 'paused') = (paused_reason is not null))
) with (fillfactor = 80);
create index webhooks_newest on webhooks (app_id, sandbox_id, created_at desc, id desc);

create table webhook_deliveries (
  app_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  -- The position of the event.
  sequence bigint not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  -- When a pending delivery is due. During an attempt, the time at which another process may repeat it.
  next_attempt_at timestamptz,
  -- Attempts since the delivery began or was last requested by hand, and in total.
  tries integer not null default 0,
  attempts integer not null default 0,
  -- The latest attempts, oldest first: {at, duration_ms, status, error, message}.
  log jsonb not null default '[]',
  delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (app_id, id),
  unique (app_id, webhook_id, event_id),
  foreign key (app_id, webhook_id) references webhooks (app_id, id) on delete cascade,
  foreign key (app_id, event_id) references events (app_id, id) on delete cascade,
  check ((state = 'pending') = (next_attempt_at is not null))
) with (fillfactor = 70);
create index webhook_deliveries_newest on webhook_deliveries (app_id, webhook_id, sequence desc);
create index webhook_deliveries_due on webhook_deliveries (app_id, webhook_id, next_attempt_at, sequence) where state = 'pending';
create index webhook_deliveries_of_event on webhook_deliveries (app_id, event_id);

-- Whether a webhook or a stream takes events of this name.
create function event_is_heard(app uuid, sandbox uuid, event_name text) returns boolean language sql stable as $$
  select exists (select 1 from webhooks w
      where w.app_id = app and w.sandbox_id = sandbox and (event_name = any(w.events) or '*' = any(w.events)))
    or exists (select 1 from event_logs l
      where l.app_id = app and l.sandbox_id = sandbox and l.followed_until > now())
$$;

create function note_heard_event() returns trigger language plpgsql as $$
begin
  new.heard := new.webhook_id is not null or event_is_heard(new.app_id, new.sandbox_id, new.name);
  return new;
end $$;
create trigger events_heard before insert on events for each row execute function note_heard_event();

create function log_heard_events() returns trigger language plpgsql as $$
begin
  perform graphile_worker.add_job('log_events', json_build_object('appId', a.app_id, 'sandboxId', a.sandbox_id))
  from (select distinct app_id, sandbox_id from added where heard) a;
  return null;
end $$;
create trigger events_logged after insert on events referencing new table as added
  for each statement execute function log_heard_events();
