-- Several databases: docs/scaling.md#cells. Only the directory's database has rows in cells and cell_apps.

-- Which database of which installation this is. No row: the installation has no cells.
create table cell_identity (
  single boolean primary key default true check (single),
  installation uuid not null,
  -- A copy of the database has the same value; a new database has another one.
  database uuid not null,
  -- Null: the directory, which is not a cell.
  cell text,
  noted_at timestamptz not null default now()
);

create table cells (
  name text primary key,
  -- The value of cell_identity in the cell's database. Null until a process has opened it.
  database uuid unique,
  state text not null default 'active' check (state in ('active', 'draining')),
  -- The release that opened the cell last.
  release text,
  opened_at timestamptz,
  created_at timestamptz not null default now()
);

-- The cell of each app, and what lists of a developer's apps show.
create table cell_apps (
  app_id uuid primary key,
  cell text not null,
  state text not null default 'here' check (state in ('here', 'moving')),
  move_id uuid,
  developer_id uuid not null,
  name text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((state = 'moving') = (move_id is not null))
);
create index cell_apps_cell on cell_apps (cell, app_id);
create index cell_apps_developer on cell_apps (developer_id, created_at, app_id);
