import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { storageFileSchema } from '@archastro/sdk/dist/types/common.js';
import { pixel } from '../../support/files.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { app, org, member } = await server.provision.world();
const asUser = PlatformClient.withToken(app.publishableKey, member.token, server.baseUrl);
const asServer = PlatformClient.withSecretKey(app.secretKey, server.baseUrl);
const data = pixel.toString('base64');

const tokenOf = (url: string | undefined) => new URL(url ?? '').searchParams.get('token') ?? '';

for (const [name, client] of [
  ['an end user', asUser],
  ['a secret key', asServer],
] as const)
  test(`the published client drives every file method as ${name}`, async () => {
    const file = await client.files.create({
      filename: 'p.png',
      content_type: 'image/png',
      data,
      org: org.id,
      share: true,
      acl: { grants: [{ principal_type: 'user', principal: member.id, actions: ['read'] }] },
    });
    storageFileSchema.parse(file);
    assert.equal(file.org, org.id);
    const shared = await client.files.share(file.id, { token: tokenOf(file.share_url) });
    assert.ok(Buffer.from(shared.content).equals(pixel));
    assert.equal(shared.mimeType, 'image/png');
    const updated = await client.files.update(file.id, {
      filename: 'q.png',
      provider_metadata: { a: [1] },
      share: false,
    });
    storageFileSchema.parse(updated);
    assert.deepEqual([updated.filename, updated.share_url], ['q.png', undefined]);
    await assert.rejects(client.files.share(file.id, { token: tokenOf(file.share_url) }), { status: 404 });
  });

test('the published client fetches pictures of agents and logos of orgs', async () => {
  type Shown = { id: string; profile_picture?: { file: string; url: string }; logo?: { file: string; url: string } };
  const picture = { data, filename: 'p.png', mime_type: 'image/png' };
  const make = async (path: string, body: object) =>
    (await server.api<Shown>('POST', path, { key: app.secretKey, body })).body;
  const agent = await make('/api/v1/agents', { name: 'A', profile_picture: picture });
  const logo = await make('/api/v1/orgs', { name: 'O', logo: picture });
  const avatar = await asUser.files.avatar(agent.profile_picture?.file ?? '', {
    token: tokenOf(agent.profile_picture?.url),
  });
  const orgLogo = await asServer.files.orgLogo(logo.logo?.file ?? '', { token: tokenOf(logo.logo?.url) });
  for (const { content, mimeType } of [avatar, orgLogo]) {
    assert.ok(Buffer.from(content).equals(pixel));
    assert.equal(mimeType, 'image/png');
  }
});
