-- Secrets bound to computers, and how far their delivery is. Values are nowhere in it.

-- The bound list of a computer, whole: a row once anything was ever bound.
CREATE TABLE computer_secrets (
  computer_id text PRIMARY KEY REFERENCES computers ON DELETE CASCADE,
  -- Counts the changes of the list.
  version int NOT NULL,
  -- Counts the starts that deliver.
  generation int NOT NULL DEFAULT 0,
  -- Counts every delivery, those to a running computer too: what a guest holds is known by it.
  serial int NOT NULL DEFAULT 0,
  -- What the computer was last known to hold: a list of {secret_id, revision_id, env, file}, by which
  -- delivery and start, and since when. All null when that is nothing.
  applied jsonb,
  applied_serial int,
  applied_generation int,
  applied_at timestamptz,
  -- Why the last delivering start was stopped.
  error text,
  -- While a process brings something to the running computer: until when it may take.
  delivering_until timestamptz,
  -- When to look whether the running computer lacks something, and how often that failed.
  due_at timestamptz,
  tries int NOT NULL DEFAULT 0
);
CREATE INDEX computer_secrets_due ON computer_secrets (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE secret_bindings (
  computer_id text NOT NULL REFERENCES computer_secrets ON DELETE CASCADE,
  position int NOT NULL,
  secret_id text NOT NULL REFERENCES secrets,
  env text,
  file text,
  -- Last delivered; until then, present when it was bound.
  revision_id text NOT NULL,
  PRIMARY KEY (computer_id, position),
  CONSTRAINT secret_bindings_one_form CHECK ((env IS NULL) <> (file IS NULL))
);
CREATE INDEX secret_bindings_of_secret ON secret_bindings (secret_id);
