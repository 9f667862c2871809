-- Accounts, people, keys, workspaces, plans and rate budgets.

CREATE TABLE plans (
  id text PRIMARY KEY,
  label text NOT NULL,
  -- Position from the cheapest to the largest.
  rank int NOT NULL,
  -- Units of the rate budget: spendable at once, refilled every minute (Part 8).
  rate_units int NOT NULL CHECK (rate_units > 0),
  max_computers int NOT NULL CHECK (max_computers >= 0),
  vcpu_pool int NOT NULL CHECK (vcpu_pool >= 0),
  ram_pool_mb int NOT NULL CHECK (ram_pool_mb >= 0),
  disk_pool_gb int NOT NULL CHECK (disk_pool_gb >= 0),
  snapshot_storage_bytes bigint NOT NULL CHECK (snapshot_storage_bytes >= 0),
  max_vcpu int NOT NULL CHECK (max_vcpu >= 0),
  max_ram_mb int NOT NULL CHECK (max_ram_mb >= 0),
  max_disk_gb int NOT NULL CHECK (max_disk_gb >= 0)
);

INSERT INTO plans VALUES
  ('none',   'No plan', 0,  1200,   0,   0,      0,    0,             0,  0,     0,    0),
  ('solo',   'Solo',    1,  4800,   5,  10,  20480,  200,  107374182400,  4,  8192,   80),
  ('studio', 'Studio',  2, 12000,  25,  50, 102400, 1000,  536870912000,  8, 16384,  160),
  ('swarm',  'Swarm',   3, 21600, 100, 200, 409600, 4000, 2147483648000, 16, 32768,  320);

CREATE TABLE accounts (
  id text PRIMARY KEY,
  name text,
  plan_id text NOT NULL REFERENCES plans,
  suspended boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
  id text PRIMARY KEY,
  email text NOT NULL,
  name text,
  verified boolean NOT NULL,
  suspended boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX users_email_taken ON users (lower(email));

CREATE TABLE members (
  account_id text NOT NULL REFERENCES accounts,
  user_id text NOT NULL REFERENCES users,
  role text NOT NULL CHECK (role IN ('viewer', 'member', 'owner')),
  seat_suspended boolean NOT NULL DEFAULT false,
  accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT members_already PRIMARY KEY (account_id, user_id)
);

CREATE TABLE workspaces (
  id text PRIMARY KEY,
  -- Order of creation; timestamps can tie.
  seq bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL REFERENCES accounts,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT workspaces_name_taken UNIQUE (account_id, name),
  -- Lets a key point at a workspace of its own account only.
  CONSTRAINT workspaces_of_account UNIQUE (account_id, id)
);
CREATE INDEX workspaces_oldest_first ON workspaces (account_id, seq);

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  -- SHA-256 of the raw key. The key itself has 192 random bits, so a plain hash cannot be searched.
  hash bytea NOT NULL CONSTRAINT api_keys_hash_taken UNIQUE,
  prefix text NOT NULL,
  name text,
  account_id text NOT NULL REFERENCES accounts,
  user_id text NOT NULL REFERENCES users,
  -- Null for an account-wide key.
  workspace_id text,
  manage_keys boolean NOT NULL DEFAULT false,
  -- Outlives the key it names.
  minted_by_key_id text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT api_keys_workspace FOREIGN KEY (account_id, workspace_id) REFERENCES workspaces (account_id, id)
);
CREATE INDEX api_keys_newest_first ON api_keys (account_id, user_id, seq DESC);
CREATE INDEX api_keys_confined ON api_keys (account_id, workspace_id) WHERE workspace_id IS NOT NULL;

-- Apart from api_keys, so that noting a use neither writes the key's row nor announces a change.
CREATE TABLE api_key_uses (
  key_id text PRIMARY KEY REFERENCES api_keys ON DELETE CASCADE,
  used_at timestamptz NOT NULL
);

-- Evidence of revocation: hashes only (Part 5 rule 6).
CREATE TABLE revoked_keys (
  hash bytea PRIMARY KEY,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  revoked_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX revoked_keys_newest ON revoked_keys (seq);
CREATE INDEX revoked_keys_age ON revoked_keys (revoked_at);

-- What every process holds of an authority is thrown away when one of these changes.
CREATE FUNCTION announce_authority() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed jsonb := to_jsonb(coalesce(NEW, OLD));
BEGIN
  PERFORM pg_notify('cubicle_authority', TG_ARGV[0] || ':' || (changed ->> TG_ARGV[1]));
  RETURN NULL;
END $$;

CREATE TRIGGER announce AFTER UPDATE ON accounts
  FOR EACH ROW EXECUTE FUNCTION announce_authority('account', 'id');
CREATE TRIGGER announce AFTER UPDATE ON users
  FOR EACH ROW EXECUTE FUNCTION announce_authority('user', 'id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON members
  FOR EACH ROW EXECUTE FUNCTION announce_authority('user', 'user_id');
CREATE TRIGGER announce AFTER UPDATE OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION announce_authority('key', 'id');
CREATE TRIGGER announce AFTER UPDATE ON plans
  FOR EACH ROW EXECUTE FUNCTION announce_authority('plan', 'id');

-- One row per account and per key that spent something lately; an absent row is a full bucket.
-- Unlogged: a crash of the database refills the budgets, which harms nobody.
CREATE UNLOGGED TABLE rate_budgets (
  bucket text PRIMARY KEY,
  level float8 NOT NULL,
  observed_at timestamptz NOT NULL
) WITH (
  -- Rows are rewritten all the time: room for that on each page, and dead ones swept early.
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000
);

-- Takes slices from the buckets of accounts and of their keys (half as large), for one process to spend
-- without asking again. A slice is what the process wants, but at most a hundredth of what is left, and
-- no more once the process holds a fiftieth of the account's budget: what processes hold idle is never
-- worth mentioning. It is at least what is needed now, or nothing when that is not there.
-- What the process still holds counts as being in the buckets, so they refill no further than what is
-- missing. An account's row is always locked before those of its keys, accounts in the order of their ids.
CREATE FUNCTION lease_budgets(
  accounts text[], keys text[], caps int[], accounts_held int[], keys_held int[], needs int[], wants int[])
RETURNS TABLE (n int, granted int, account_level float8, key_level float8) LANGUAGE plpgsql
-- A plan kept from when the table was empty would go on reading all of it: seen at 20 ms a call.
SET enable_seqscan = off AS $$
DECLARE
  ask record;
  available int;
BEGIN
  FOR ask IN
    SELECT * FROM unnest(accounts, keys, caps, accounts_held, keys_held, needs, wants)
      WITH ORDINALITY AS asked(account, key, cap, account_held, key_held, need, want, place)
    ORDER BY account, key
  LOOP
    account_level := refill_budget(ask.account, ask.cap, ask.account_held);
    key_level := refill_budget(ask.key, ask.cap / 2, ask.key_held);
    available := floor(least(account_level, key_level));
    granted := 0;
    IF available >= ask.need THEN
      granted := greatest(ask.need,
        least(ask.want, available / 100, ask.cap / 50 - ask.account_held));
      account_level := account_level - granted;
      key_level := key_level - granted;
      UPDATE rate_budgets SET level = account_level WHERE bucket = ask.account;
      UPDATE rate_budgets SET level = key_level WHERE bucket = ask.key;
    END IF;
    n := ask.place;
    RETURN NEXT;
  END LOOP;
END $$;

-- The level of a bucket as of now, its row made and locked.
CREATE FUNCTION refill_budget(name text, cap int, held int) RETURNS float8 LANGUAGE sql AS $$
  INSERT INTO rate_budgets AS b (bucket, level, observed_at) VALUES (name, cap - held, clock_timestamp())
  ON CONFLICT (bucket) DO UPDATE SET
    level = least(cap - held,
      b.level + greatest(0, extract(epoch FROM excluded.observed_at - b.observed_at)) * cap / 60),
    observed_at = greatest(b.observed_at, excluded.observed_at)
  RETURNING level
$$;
