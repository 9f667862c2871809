-- Secrets: their values encrypted with the operator's keyring, which is not in the database.

CREATE TABLE secrets (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL REFERENCES accounts,
  -- Null for an account-wide one. May name a workspace since deleted, so it refers to none
  -- (Part 4, Workspaces 8).
  workspace_id text,
  -- A deleted secret leaves its row, without name and value: it counts among those ever made.
  name text,
  sealed bytea,
  revision_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz,
  deleted_at timestamptz,
  CONSTRAINT secrets_erased CHECK ((deleted_at IS NULL) = (name IS NOT NULL)
    AND (deleted_at IS NULL) = (sealed IS NOT NULL))
);
CREATE INDEX secrets_of_account ON secrets (account_id, seq);
-- In the collation C only the letters A to Z have another case.
CREATE UNIQUE INDEX secrets_name_taken ON secrets (account_id, workspace_id, lower(name COLLATE "C"))
  NULLS NOT DISTINCT WHERE deleted_at IS NULL;

-- One value sealed with the service's keyring: a server whose keyring does not open it has another one.
CREATE TABLE keyring_check (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  sealed bytea NOT NULL
);
