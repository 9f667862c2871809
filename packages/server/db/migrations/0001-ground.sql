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
);

-- Takes a slice from the account's bucket and from the key's (half as large) for one process to spend
-- without asking again. A slice is a hundredth of what is left, at least what is needed now, so what
-- idle processes hold is never worth mentioning. Grants 0 when what is left does not cover the need.
-- What the asking process still holds of earlier slices counts as being in the buckets, so they refill
-- no further than what is missing. The account's row is always locked before the key's.
CREATE FUNCTION lease_budget(
  account text, key text, cap int, account_held int, key_held int, need int)
RETURNS TABLE (granted int, account_level float8, key_level float8) LANGUAGE plpgsql AS $$
DECLARE
  moment timestamptz;
  available int;
BEGIN
  INSERT INTO rate_budgets VALUES (account, cap, clock_timestamp()) ON CONFLICT DO NOTHING;
  INSERT INTO rate_budgets VALUES (key, cap / 2, clock_timestamp()) ON CONFLICT DO NOTHING;
  PERFORM FROM rate_budgets WHERE bucket = account FOR NO KEY UPDATE;
  PERFORM FROM rate_budgets WHERE bucket = key FOR NO KEY UPDATE;
  moment := clock_timestamp();
  SELECT least(cap - account_held, level + extract(epoch FROM moment - observed_at) * cap / 60)
    INTO account_level FROM rate_budgets WHERE bucket = account;
  SELECT least(cap / 2 - key_held, level + extract(epoch FROM moment - observed_at) * (cap / 2) / 60)
    INTO key_level FROM rate_budgets WHERE bucket = key;
  -- A row that was swept away this very moment was full.
  account_level := coalesce(account_level, cap - account_held);
  key_level := coalesce(key_level, cap / 2 - key_held);
  available := floor(least(account_level, key_level));
  granted := CASE WHEN available >= need THEN greatest(need, available / 100) ELSE 0 END;
  account_level := account_level - granted;
  key_level := key_level - granted;
  UPDATE rate_budgets SET level = account_level, observed_at = moment WHERE bucket = account;
  UPDATE rate_budgets SET level = key_level, observed_at = moment WHERE bucket = key;
  RETURN NEXT;
END $$;
