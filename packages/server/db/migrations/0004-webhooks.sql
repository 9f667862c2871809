-- Webhooks: subscriptions, their queue, and how far each host's events were read into it.

-- How many subscriptions an account may have; 0: the plan includes no webhooks.
ALTER TABLE plans ADD COLUMN max_webhooks int NOT NULL DEFAULT 0 CHECK (max_webhooks >= 0);
UPDATE plans SET max_webhooks = 10 WHERE id <> 'none';

CREATE TABLE webhooks (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL REFERENCES accounts,
  -- Set where a key confined to a workspace made it.
  workspace_id text,
  url text NOT NULL,
  description text NOT NULL,
  -- Empty: every type, every computer in scope.
  events text[] NOT NULL,
  computers text[] NOT NULL,
  enabled boolean NOT NULL,
  disabled_reason text CHECK (disabled_reason IN ('customer', 'failing', 'plan')),
  disabled_at timestamptz,
  -- When it was last enabled: an endpoint that fails has 24 hours from here.
  enabled_at timestamptz NOT NULL,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_status int,
  -- Sealed by the keyring. The previous one signs too until its time has passed.
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_until timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT webhooks_workspace FOREIGN KEY (account_id, workspace_id) REFERENCES workspaces (account_id, id),
  CONSTRAINT webhooks_reason CHECK (enabled = (disabled_reason IS NULL) AND enabled = (disabled_at IS NULL))
);
CREATE INDEX webhooks_of_account ON webhooks (account_id, seq);
CREATE INDEX webhooks_confined ON webhooks (account_id, workspace_id) WHERE workspace_id IS NOT NULL;

-- One per subscription, whether it has work or not. Whoever holds a lane makes its deliveries, so that
-- four at a time is counted in one place; a holder that is gone loses it when its time has passed.
CREATE TABLE webhook_lanes (
  webhook_id text PRIMARY KEY,
  -- No delivery falls due before this.
  due_at timestamptz NOT NULL DEFAULT 'infinity',
  holder text,
  -- By the database's clock.
  held_until timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX webhook_lanes_due ON webhook_lanes (due_at);

-- Without a foreign key: deleting a subscription with a million records must not take a million look-ups
-- in one statement. Who adds rows holds the subscription's row meanwhile.
CREATE TABLE webhook_deliveries (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  webhook_id text NOT NULL,
  event_type text NOT NULL,
  computer text NOT NULL,
  cursor text NOT NULL,
  -- As it is sent, byte for byte.
  body text NOT NULL,
  state text NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'in_flight', 'delivered', 'exhausted', 'dropped')),
  attempts int NOT NULL DEFAULT 0,
  next_at timestamptz,
  attempted_at timestamptz,
  last_status int,
  last_error text,
  delivered_at timestamptz,
  created_at timestamptz NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (webhook_id, created_at, seq);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at, seq) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_under_way ON webhook_deliveries (webhook_id) WHERE state = 'in_flight';
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (created_at)
  WHERE state IN ('delivered', 'exhausted', 'dropped');

-- Deleted subscriptions of which records are left, which are removed a few at a time.
CREATE TABLE webhook_remains (
  webhook_id text PRIMARY KEY
);

-- How far the events of a host are in the queue: advanced in the transaction that queues them.
CREATE TABLE event_cursors (
  host_id text PRIMARY KEY REFERENCES hosts,
  cursor text NOT NULL
);

-- Which process reads a host's events. Losing this table does no harm.
CREATE UNLOGGED TABLE event_readers (
  host_id text PRIMARY KEY,
  holder text NOT NULL,
  held_until timestamptz NOT NULL
);

-- Where a computer was before: an event is heard by the workspace its computer was in at the time.
CREATE TABLE computer_moves (
  computer_id text NOT NULL,
  left_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  workspace_id text,
  PRIMARY KEY (computer_id, left_at)
);
CREATE INDEX computer_moves_age ON computer_moves (left_at);

CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO computer_moves (computer_id, workspace_id) VALUES (OLD.id, OLD.workspace_id);
  RETURN NULL;
END $$;

CREATE TRIGGER note_move AFTER UPDATE ON computers
  FOR EACH ROW WHEN (OLD.workspace_id IS DISTINCT FROM NEW.workspace_id)
  EXECUTE FUNCTION note_move();

-- Whoever holds the lane of a subscription that changed reads it again before its next attempt.
CREATE FUNCTION announce_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('cubicle_webhooks', OLD.id);
  RETURN NULL;
END $$;

CREATE TRIGGER announce_change AFTER UPDATE ON webhooks
  FOR EACH ROW WHEN (OLD.enabled <> NEW.enabled OR OLD.url <> NEW.url OR OLD.secret <> NEW.secret)
  EXECUTE FUNCTION announce_webhook();
CREATE TRIGGER announce_delete AFTER DELETE ON webhooks
  FOR EACH ROW EXECUTE FUNCTION announce_webhook();
