import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ConsoleTest } from '../support/browser.ts';
import { chart, loadApp } from '../support/console.ts';
import { startS3Server } from '../support/s3-server.ts';

const s3 = await startS3Server();
const { bucket, endpoint = '', credentials } = s3.options;
const onS3 = await ConsoleTest.start({
  env: {
    QUARRY_BLOB_STORE: 's3',
    QUARRY_S3_BUCKET: bucket,
    QUARRY_S3_ENDPOINT: endpoint,
    QUARRY_S3_PATH_STYLE: 'true',
    AWS_ACCESS_KEY_ID: credentials?.accessKeyId ?? '',
    AWS_SECRET_ACCESS_KEY: credentials?.secretAccessKey ?? '',
  },
});
const onDisk = await ConsoleTest.start();
after(async () => {
  await Promise.all([onS3.close(), onDisk.close()]);
  await s3.stop();
});
afterEach(onS3.closePages);
afterEach(onDisk.closePages);

/** Opens a picture's page, and waits until the picture itself is drawn. */
async function seePicture(it: ConsoleTest, origin = ''): Promise<Page> {
  const app = await loadApp(it.server);
  const file = await it.server.api<{ id: string; url: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'tides.svg', content_type: 'image/svg+xml', data: chart.toString('base64') },
  });
  const page = await it.openAsDeveloper(app, `${origin}/console/files/${file.body.id}`);
  const picture = page.getByRole('img', { name: 'tides.svg' });
  await picture.waitFor();
  await page.evaluate("document.querySelector('.preview-image').decode()");
  assert.equal(
    await picture.getAttribute('src').then((src) => new URL(src ?? '').origin),
    new URL(file.body.url).origin,
  );
  return page;
}

test('pictures are shown from the S3 service that stores them, and from no other host', async () => {
  const page = await seePicture(onS3);
  const policy = (await page.request.get('/console')).headers()['content-security-policy'] ?? '';
  assert.ok(policy.includes(`img-src 'self' blob: data: ${onS3.server.baseUrl} ${endpoint};`), policy);
});

test('the console works under another name of the server than its own', async () => {
  const { port } = new URL(onDisk.server.baseUrl);
  await seePicture(onDisk, `http://localhost:${port}`);
});
