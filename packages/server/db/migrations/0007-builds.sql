-- Builds: template documents made into images, which hosts hold under the build's id.

-- Builds in 24 hours; none where it is 0.
ALTER TABLE plans ADD COLUMN builds_per_day int NOT NULL DEFAULT 0 CHECK (builds_per_day >= 0);
UPDATE plans SET builds_per_day = CASE id WHEN 'solo' THEN 10 WHEN 'studio' THEN 50 WHEN 'swarm' THEN 200 ELSE 0 END;

CREATE TABLE builds (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  -- Null for the service's own templates.
  account_id text REFERENCES accounts,
  ref text NOT NULL,
  -- Of the document, and of all that decides the image: steps, parent, disk, revisions of secrets.
  doc_digest text NOT NULL,
  build_key text NOT NULL,
  family text NOT NULL,
  -- The template of the host's own that it begins with.
  parent text NOT NULL,
  disk_gb int NOT NULL,
  host_id text NOT NULL REFERENCES hosts,
  -- Whose image it is: its own, or that of the build it reused. Null until it has succeeded.
  image_id text,
  status text NOT NULL CHECK (status IN ('running', 'succeeded', 'failed')),
  phase text NOT NULL,
  step int NOT NULL DEFAULT 0,
  -- In order: kind, label, status, started_at, finished_at.
  steps jsonb NOT NULL,
  note text NOT NULL DEFAULT '',
  error text,
  -- Grows whenever something moved.
  moves int NOT NULL DEFAULT 0,
  -- Takes room of the storage pool: from its acceptance until it fails or its image is removed.
  kept boolean NOT NULL,
  -- When it last was the newest of its family: by its own success, or by another's reuse.
  kept_at timestamptz,
  -- Older than the newest ones of its family, and removed as soon as no computer uses it.
  surplus boolean NOT NULL DEFAULT false,
  -- The process that follows a running one renews this.
  held_until timestamptz NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz,
  removed_at timestamptz
);
CREATE INDEX builds_of_account ON builds (account_id, seq DESC);
CREATE INDEX builds_kept ON builds (account_id) WHERE kept;
CREATE INDEX builds_of_document ON builds (doc_digest, account_id, seq DESC);
CREATE INDEX builds_of_key ON builds (build_key) WHERE kept;
CREATE INDEX builds_of_family ON builds (host_id, family, kept_at DESC) WHERE kept;
CREATE INDEX builds_surplus ON builds (id) WHERE surplus AND kept;
CREATE INDEX builds_of_image ON builds (image_id);
CREATE INDEX builds_ended ON builds (finished_at) WHERE NOT kept;
CREATE INDEX builds_running ON builds (held_until) WHERE status = 'running';
-- A host builds one at a time (Part 4, Builds 7).
CREATE UNIQUE INDEX builds_one_per_host ON builds (host_id) WHERE status = 'running';

-- Streams of a build are open in any process.
CREATE FUNCTION announce_build() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('cubicle_builds', NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER UPDATE ON builds
  FOR EACH ROW WHEN (OLD.moves <> NEW.moves)
  EXECUTE FUNCTION announce_build();

-- What was asked for in the last 24 hours: every row is a request, a charged one is a build too.
CREATE TABLE build_requests (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  build_id text,
  charged boolean NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX build_requests_of_account ON build_requests (account_id, at DESC);
CREATE INDEX build_requests_of_build ON build_requests (build_id);
CREATE INDEX build_requests_age ON build_requests (at);

-- Open streams of all processes, counted by account. A process that dies leaves some, for a while.
CREATE UNLOGGED TABLE build_streams (
  id text PRIMARY KEY,
  account_id text NOT NULL,
  held_until timestamptz NOT NULL
);
CREATE INDEX build_streams_of_account ON build_streams (account_id, held_until);

-- The build whose image a computer was made from.
ALTER TABLE computers ADD COLUMN build_id text;
CREATE INDEX computers_of_build ON computers (build_id) WHERE build_id IS NOT NULL AND state IN ('live', 'deleting');
