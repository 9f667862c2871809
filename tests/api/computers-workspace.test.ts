import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import { acted, computer, made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

suite('the workspace of a computer', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  async function twoWorkspaces() {
    const { as, account } = await service.account();
    const [one, two] = [
      (await as.post('/workspaces', { name: 'one' })).body.id as string,
      (await as.post('/workspaces', { name: 'two' })).body.id as string,
    ];
    const inOne = (await service.member(account.id, 'owner', { workspace: one })).as;
    const inTwo = (await service.member(account.id, 'owner', { workspace: two })).as;
    return { as, one, two, inOne, inTwo };
  }

  test('Part 4 Workspaces 4, Part 5 2: keys of the old workspace lose it with its operations, those of the new one reach it', async () => {
    const { as, one, two, inOne, inTwo } = await twoWorkspaces();
    const { id, operation_id } = await made(inOne, { start: false });
    const move = (workspace_id: string | null) =>
      as.put(`/computers/${id}/workspace`, { workspace_id });
    const sees = async (key: typeof as) => [
      (await key.get(`/computers/${id}`)).status,
      (await key.get('/computers')).body.length,
      (await key.get(`/operations/${operation_id}`)).status,
    ];
    assert.deepEqual(
      [await sees(inOne), await sees(inTwo)],
      [
        [200, 1, 200],
        [404, 0, 404],
      ],
    );
    const moved = await move(two);
    assert.deepEqual([moved.status, moved.body.workspace_id], [200, two]);
    assert.deepEqual(
      [await sees(inOne), await sees(inTwo)],
      [
        [404, 0, 404],
        [200, 1, 200],
      ],
    );
    await acted(inTwo, id, 'start');
    assertRefused(await inOne.send('POST', `/computers/${id}/stop`), 404);
    await acted(inTwo, id, 'stop');
    assert.equal((await move(null)).body.workspace_id, undefined);
    assert.deepEqual(
      [await sees(inOne), await sees(inTwo)],
      [
        [404, 0, 404],
        [404, 0, 404],
      ],
    );
    assert.deepEqual(await sees(as), [200, 1, 200]);
    assert.equal((await move(one)).body.workspace_id, one);
    assertRefused(await inOne.put(`/computers/${id}/workspace`, { workspace_id: one }), 403);
  });

  test('Part 4 Workspaces 4: it must be stopped without a saved session; the body names a workspace or null', async () => {
    const { as, one, inOne } = await twoWorkspaces();
    const { id } = await made(inOne);
    const put = (json: unknown) => as.send('PUT', `/computers/${id}/workspace`, { json });
    assertRefused(await put({ workspace_id: null }), 409, 'unsupported');
    await acted(as, id, 'suspend');
    assertRefused(await put({ workspace_id: null }), 409, 'unsupported');
    await acted(as, id, 'stop');
    for (const json of [{}, { workspace_id: 7 }, { workspace_id: null, x: 1 }, [], null]) {
      assertRefused(await put(json), 400);
    }
    const stranger = await service.account();
    const foreign = (await stranger.as.post('/workspaces', { name: 'foreign' })).body.id;
    for (const workspace_id of [foreign, 'wsp-000000000000', '', 'unassigned']) {
      assertRefused(await put({ workspace_id }), 404);
    }
    assertRefused(await stranger.as.put(`/computers/${id}/workspace`, { workspace_id: null }), 404);
    assert.equal((await computer(as, id)).workspace_id, one);
  });

  test('Part 4 Workspaces 6: a workspace is never deleted from under a computer that is made in it or moved into it', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    for (let round = 0; round < 12; round += 1) {
      const workspace_id = (await as.post('/workspaces', { name: `race ${round}` })).body.id;
      const coming =
        round % 2 === 0
          ? as.post('/computers', { cpu: 1, ram_mb: 512, start: false, workspace_id })
          : as.put(`/computers/${id}/workspace`, { workspace_id });
      const [came, gone] = await Promise.all([coming, as.delete(`/workspaces/${workspace_id}`)]);
      const arrived = came.status < 300;
      if (arrived) assertRefused(gone, 409, 'unsupported');
      else assertRefused(came, 404);
      assert.equal(gone.status, arrived ? 409 : 200);
    }
  });

  test('Part 4 Workspaces 6, Part 2 Computer: a workspace with computers stays; one that only ended ones name can go', async () => {
    const { as, one, inOne } = await twoWorkspaces();
    const { id } = await made(inOne, { start: false });
    const refused = await as.delete(`/workspaces/${one}`);
    assertRefused(refused, 409, 'unsupported');
    assert.match(refused.body.error, /\b1 computer\b/);
    assert.equal((await inOne.get('/whoami')).status, 200);
    await as.delete(`/computers/${id}`);
    assert.equal((await as.delete(`/workspaces/${one}`)).status, 200);
    const [ended] = (await as.get('/computers?state=deleted')).body;
    assert.deepEqual([ended.id, ended.workspace_id], [id, one]);
    assertRefused(await as.get(`/workspaces/${one}`), 404);
  });
});
