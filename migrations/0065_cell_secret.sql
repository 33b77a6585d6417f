-- The id of the installation, wrapped with the root secret, in the directory: processes and commands with another secret
-- are refused before they open a cell. Null until a process of this release has opened the directory.
alter table cell_identity add column secret_check bytea;
