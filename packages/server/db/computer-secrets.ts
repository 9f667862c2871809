// What of bound secrets is read with a computer's row.

/** A binding as it stands beside the secret it names. */
export interface BoundSecret {
  secret_id: string;
  revision_id: string;
  env: string | null;
  file: string | null;
  /** The secret's present revision. */
  latest: string;
  deleted: boolean;
}

export interface AppliedSecret {
  secret_id: string;
  revision_id: string;
  env: string | null;
  file: string | null;
}

export interface ComputerSecrets {
  version: number;
  generation: number;
  error: string | null;
  /** Null where it holds nothing. */
  applied: AppliedSecret[] | null;
  applied_serial: number | null;
  applied_generation: number | null;
  applied_at: string | null;
  delivering: boolean;
  bound: BoundSecret[];
}

/** A column of `computers`; null for one that never had any. A start that delivers is an operation that says so. */
export const secretsColumn = `(
  SELECT jsonb_build_object('version', s.version, 'generation', s.generation, 'error', s.error,
    'applied', s.applied, 'applied_serial', s.applied_serial,
    'applied_generation', s.applied_generation, 'applied_at', s.applied_at,
    'delivering', coalesce(s.delivering_until > clock_timestamp(), false) OR EXISTS (
      SELECT FROM operations o WHERE o.computer_id = s.computer_id
        AND o.state IN ('pending', 'running') AND o.command ? 'delivers'),
    'bound', (SELECT coalesce(jsonb_agg(jsonb_build_object('secret_id', b.secret_id,
        'revision_id', b.revision_id, 'env', b.env, 'file', b.file,
        'latest', x.revision_id, 'deleted', x.deleted_at IS NOT NULL) ORDER BY b.position), '[]')
      FROM secret_bindings b JOIN secrets x ON x.id = b.secret_id
      WHERE b.computer_id = s.computer_id))
  FROM computer_secrets s WHERE s.computer_id = computers.id) AS secrets`;
