-- Resumable uploads.

-- An upload becomes the file with the same id. Its bytes are a partial blob under blob_key, described by `state`: the
-- first `received` bytes are durable. finished_at is set in the transaction that inserts the file.
create table uploads (
  app_id uuid not null,
  id uuid not null,
  sandbox_id uuid not null,
  -- Who created it, if that was a user.
  user_id uuid,
  metadata text not null,
  -- The owners that the file will have.
  owned jsonb not null,
  length bigint not null,
  received bigint not null default 0,
  blob_key text not null,
  state jsonb not null,
  -- The process that appends to it now.
  holder text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  finished_at timestamptz,
  primary key (app_id, id),
  foreign key (app_id, sandbox_id) references sandboxes (app_id, id) on delete cascade,
  foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);
create unique index uploads_blob on uploads (app_id, blob_key);
create index uploads_newest on uploads (app_id, sandbox_id, created_at desc, id desc);
create index uploads_user on uploads (app_id, user_id) where user_id is not null;
create index uploads_unfinished on uploads (app_id) where finished_at is null;
create index uploads_expired on uploads (expires_at);

-- A partial blob to delete, in addition to the blob with this key: its state.
alter table doomed_blobs add column partial jsonb;

-- An unfinished upload counts against the quota of bytes with its whole length.
create function uploads_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform app_use(new.app_id, new.sandbox_id, 'file_bytes', new.length);
    return null;
  end if;
  -- When a whole sandbox is deleted, its counts go with it.
  if exists (select 1 from sandboxes s where s.app_id = old.app_id and s.id = old.sandbox_id) then
    perform app_use(old.app_id, old.sandbox_id, 'file_bytes', -old.length);
  end if;
  if tg_op = 'DELETE' then
    insert into doomed_blobs (app_id, blob_key, partial) values (old.app_id, old.blob_key, old.state)
      on conflict (app_id, blob_key) do update set due_at = now(), partial = excluded.partial;
  end if;
  return null;
end $$;
create trigger uploads_reserved after insert on uploads for each row execute function uploads_counted();
create trigger uploads_finished after update of finished_at on uploads for each row
  when (old.finished_at is null and new.finished_at is not null) execute function uploads_counted();
create trigger uploads_ended after delete on uploads for each row
  when (old.finished_at is null) execute function uploads_counted();

-- A finished upload ends with its file.
create function end_uploads() returns trigger language plpgsql as $$
begin
  delete from uploads u using gone g where u.app_id = g.app_id and u.id = g.id;
  return null;
end $$;
create trigger files_uploads_ended after delete on files referencing old table as gone
  for each statement execute function end_uploads();
