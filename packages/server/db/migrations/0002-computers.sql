-- Hosts, computers as asked for, operations on them, and the keys that make calls repeatable.

-- How many computers of an account may be set never to suspend when idle.
ALTER TABLE plans ADD COLUMN never_idle int NOT NULL DEFAULT 0 CHECK (never_idle >= 0);
UPDATE plans SET never_idle = CASE id WHEN 'studio' THEN 1 WHEN 'swarm' THEN 4 ELSE 0 END;

CREATE TABLE hosts (
  id text PRIMARY KEY,
  -- unix:/path of a daemon on this machine, or https://…
  address text NOT NULL,
  cpu int NOT NULL,
  ram_mb int NOT NULL,
  disk_gb int NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Given up by the operator: it will not come back, and nobody asks it any more.
  retired_at timestamptz
);

CREATE TABLE computers (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL REFERENCES accounts,
  -- May name a workspace since deleted (Part 2 Computer), so it refers to none.
  workspace_id text,
  host_id text NOT NULL REFERENCES hosts,
  name text NOT NULL,
  template text NOT NULL,
  os text NOT NULL DEFAULT 'linux',
  desktop text,
  cpu int NOT NULL,
  ram_mb int NOT NULL,
  disk_gb int NOT NULL,
  resolution text NOT NULL,
  idle_suspend_min int,
  -- 'void' is one that never came to be: nobody sees it, and whatever a host has of it is removed.
  state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'deleting', 'deleted', 'lost', 'void')),
  -- Its host did not answer the create or clone: admission counts it, reading the quota does not.
  unheard boolean NOT NULL DEFAULT false,
  -- Running, or admitted to run: charged to the running pools from admission on.
  active boolean NOT NULL DEFAULT false,
  -- When it was last admitted to run.
  started_at timestamptz,
  -- While a session is saved: since when.
  suspended_at timestamptz,
  -- The computer a clone is copied from, and why its copy failed.
  build_source text,
  build_failed text,
  -- Counts the changes of its desktop credentials.
  rotation int NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  deleted_at timestamptz,
  lost_at timestamptz
);
CREATE INDEX computers_of_account ON computers (account_id, seq) WHERE state IN ('live', 'deleting');
CREATE INDEX computers_ended ON computers (account_id, state, seq) WHERE state IN ('deleted', 'lost');
CREATE INDEX computers_void ON computers (created_at) WHERE state = 'void';
CREATE INDEX computers_on_host ON computers (host_id) WHERE state IN ('live', 'deleting');

CREATE TABLE operations (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL REFERENCES accounts,
  computer_id text NOT NULL,
  kind text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'running', 'succeeded', 'failed')),
  error_code text,
  error_message text,
  idempotency_key text,
  -- What the host is told; repeated as it stands after a crash.
  command jsonb NOT NULL,
  -- The process that carries it out renews this; once it has passed, any process takes it up.
  held_until timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz
);
CREATE INDEX operations_newest_first ON operations (account_id, seq DESC);
CREATE INDEX operations_of_computer ON operations (computer_id, seq DESC);
CREATE INDEX operations_unfinished ON operations (held_until) WHERE state IN ('pending', 'running');
CREATE INDEX operations_age ON operations (created_at);
-- One change of a computer at a time.
CREATE UNIQUE INDEX operations_one_at_a_time ON operations (computer_id) WHERE state IN ('pending', 'running');

CREATE TABLE idempotency_keys (
  account_id text NOT NULL REFERENCES accounts,
  -- The workspace the key's holder is confined to, or '' for the account: keys are kept per scope.
  scope text NOT NULL,
  key text NOT NULL,
  request_digest text NOT NULL,
  operation_id text,
  -- Null until the call has finished.
  answer_status int,
  -- As it was sent, field by field.
  answer json,
  outcome_unknown boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (account_id, scope, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_operation ON idempotency_keys (operation_id);

-- Secrets of the service itself, the same for all its processes.
CREATE TABLE service_keys (
  name text PRIMARY KEY,
  secret bytea NOT NULL
);
