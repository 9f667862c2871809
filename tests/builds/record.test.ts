import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { HostBuildProgress } from '../../packages/contract/host/builds.ts';
import { limits } from '../../packages/contract/limits.ts';
import { errorText, lostOf, progressOf, toldOf } from '../../packages/server/app/build-record.ts';
import type { BuildRow } from '../../packages/server/db/builds.ts';

const at = '2026-01-02T03:04:05.678Z';
const row: BuildRow = {
  id: 'bld-000000000000',
  account_id: null,
  ref: 'system/own@1.0.0',
  doc_digest: '',
  build_key: '',
  family: '',
  parent: 'base',
  disk_gb: 10,
  host_id: '',
  image_id: null,
  status: 'running',
  phase: 'planning',
  step: 0,
  steps: [
    { kind: 'apt', label: 'git', status: 'done' },
    { kind: 'finish', label: 'Finish the image', status: 'running' },
  ],
  note: '',
  error: null,
  moves: 7,
  kept: true,
  started_at: new Date(at),
  updated_at: new Date(at),
  finished_at: null,
};
const said: HostBuildProgress = {
  id: row.id,
  moves: 3,
  status: 'failed',
  phase: 'failed',
  step: 99,
  steps: [{ status: 'done', started_at: '2026-01-02T04:04:05.678901Z' }],
  note: 'first line\nsecond',
  updated_at: '2026-01-02T03:04:06.5Z',
};

suite('what hosts tell of builds', () => {
  test('Part 2 Build: whatever a host says fits the record', () => {
    const told = toldOf(row, said);
    assert.equal(told.moves, 8, 'it moved, whatever the host counts');
    assert.equal(told.step, 2);
    assert.equal(told.note, 'first line');
    assert.deepEqual(told.steps, [
      { kind: 'apt', label: 'git', status: 'done', started_at: '2026-01-02T04:04:05.678Z' },
      { kind: 'finish', label: 'Finish the image', status: 'unknown' },
    ]);
    assert.equal(
      progressOf({ ...row, updated_at: told.at }).updated_at,
      '2026-01-02T03:04:06.500Z',
    );
  });

  test('Part 2 Build: an error is what the database takes, bounded, and never empty', () => {
    assert.equal(errorText({ ...said, error: 'a\0b' }), 'ab');
    const long = errorText({ ...said, error: `${'x'.repeat(10_000)}the end` });
    assert.equal(long.length, limits.buildError);
    assert.ok(long.endsWith('the end'));
    // Cut in the middle of a character.
    assert.ok(
      errorText({ ...said, error: `😀${'x'.repeat(limits.buildError - 1)}` }).isWellFormed(),
    );
    assert.equal(errorText({ ...said, error: ' ' }), 'first line\nsecond');
    assert.equal(errorText({ ...said, note: '' }), 'The build failed.');
  });

  test('Part 2 Build: of a build that its host forgot nothing is known but what was done', () => {
    const { steps, phase, moves } = lostOf(row, 'why');
    assert.deepEqual([phase, moves], ['failed', 8]);
    assert.deepEqual(
      steps.map(({ status }) => status),
      ['done', 'unknown'],
    );
  });
});
