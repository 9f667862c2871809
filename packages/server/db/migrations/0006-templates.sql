-- Templates that accounts published. A row is a claim for good: a retired reference is never published again.

CREATE TABLE templates (
  account_id text NOT NULL REFERENCES accounts,
  name text NOT NULL,
  -- MAJOR, MINOR, PATCH, which order as versions do.
  version int[] NOT NULL,
  -- The canonical form, and its digest.
  document text NOT NULL,
  doc_digest text NOT NULL,
  published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  retired_at timestamptz,
  PRIMARY KEY (account_id, name, version)
);
