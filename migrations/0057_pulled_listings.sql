-- Sources that pull a listing: entries of a feed, files of a repository, objects of a bucket. Each entry is a document
-- with an external id; a pull reads again those whose version has changed.
alter table knowledge_documents
  add column external_version text,
  add column external_seen_at timestamptz;

alter table knowledge_sources
  -- Encrypted under the root secret, with the scheme, host and port that they are for.
  add column credentials bytea,
  add column credentials_for text,
  -- What the last pull left for the next one, such as an ETag.
  add column pull_state jsonb,
  -- Deletions that wait for a person.
  add column held_deletions jsonb;
