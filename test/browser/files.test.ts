import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ConsoleTest, pdfShown } from '../support/browser.ts';
import { chart, loadApp } from '../support/console.ts';
import { pdf } from '../support/documents.ts';
import { until } from '../support/until.ts';
import { metadataOf, offsetType, tus } from '../support/uploads.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);

test('files are uploaded, found, read, shared, transferred and deleted', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  await page.getByText('No files yet').waitFor();
  await it.picture(page, 'files-empty');
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Choose files' }).click(),
  ]);
  await chooser.setFiles([
    { name: 'harbour-report.pdf', mimeType: 'application/pdf', buffer: Buffer.from(pdf()) },
    { name: 'tides.svg', mimeType: 'image/svg+xml', buffer: chart },
    {
      name: 'notes.md',
      mimeType: 'text/markdown',
      buffer: Buffer.from('# Notes\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<script>alert(1)</script>\n'),
    },
  ]);
  const uploads = page.getByRole('list', { name: 'Uploads' });
  await uploads.getByText('Uploaded', { exact: true }).nth(2).waitFor();
  const rows = page.locator('table.list tbody tr');
  await rows.nth(2).waitFor();
  // The PDF has a small picture; an SVG is never drawn.
  const thumbnails = page.locator('img.thumbnail');
  await thumbnails.first().waitFor();
  assert.equal(await thumbnails.count(), 1);
  await page.evaluate("document.querySelector('img.thumbnail').decode()");
  await it.picture(page, 'files');

  await page.getByLabel('Search files by name').fill('tides');
  await rows.nth(1).waitFor({ state: 'detached' });
  await rows.getByRole('link', { name: 'tides.svg' }).click();
  await page.getByRole('img', { name: 'tides.svg' }).waitFor();
  const link = page.getByLabel('Public link');
  await page.getByRole('switch').click();
  const url = await link.inputValue();
  assert.match(url, /\/share\?token=/);
  assert.equal((await fetch(url)).status, 200);
  await page.getByLabel('Give access to').selectOption('everyone');
  await page.getByRole('button', { name: 'Give access' }).click();
  await page.getByRole('button', { name: 'Remove Everyone in the app' }).waitFor();
  await it.picture(page, 'file');
  await page.getByRole('button', { name: 'Remove Everyone in the app' }).click();
  await page.getByText('Only the owner has access').waitFor();
  await page.getByRole('switch').click();
  await link.waitFor({ state: 'detached' });
  assert.equal((await fetch(url)).status, 404);

  await page.getByRole('navigation', { name: 'Breadcrumbs' }).getByRole('link', { name: 'Files' }).click();
  await page.getByRole('link', { name: 'notes.md' }).first().click();
  await page.getByRole('heading', { name: 'Notes', exact: true }).waitFor();
  await page.getByText('<script>alert(1)</script>').waitFor();
  await page.getByText('Only images can have a public link').waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete the file' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await rows.nth(1).waitFor();
  await page.getByRole('row').filter({ hasText: 'notes.md' }).waitFor({ state: 'detached' });

  await page.locator('table').getByRole('link', { name: 'harbour-report.pdf' }).click();
  await pdfShown(page);
});

test('files that are dropped on the page are uploaded, and a refused upload shows the reason', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  const dropped = await page.evaluateHandle(`(() => {
    const data = new DataTransfer();
    data.items.add(new File(['tide tables'], 'dropped.txt', { type: 'text/plain' }));
    data.items.add(new File(['x'], 'odd.bin', { type: 'application/x y' }));
    return data;
  })()`);
  // The refusal arrives when a person is about to open the file that was uploaded.
  let refuse = (): void => {};
  const pointed = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  await page.route('**/api/v1/files/uploads', async (route) => {
    if (route.request().headers()['x-filename'] === 'odd.bin') await pointed;
    await route.continue();
  });
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: dropped });
  const uploads = page.getByRole('list', { name: 'Uploads' });
  const link = uploads.getByRole('link', { name: 'dropped.txt' });
  await link.waitFor();
  const before = await link.boundingBox();
  refuse();
  await uploads.getByRole('alert').getByText('is not a media type').waitFor();
  assert.deepEqual(await link.boundingBox(), before, 'the link stays under the pointer');
  await link.click();
  await page.getByText('tide tables').waitFor();
  await page.goBack();
  await page.locator('table.list').getByRole('link', { name: 'dropped.txt' }).waitFor();
});

test('a file dropped beside the box does not make the browser leave', async () => {
  const page = await it.openAsDeveloper(app, '/console/kv');
  await page.getByRole('heading', { name: 'Key-value' }).waitFor();
  const prevented = await page.evaluate(`(() => {
    const data = new DataTransfer();
    data.items.add(new File(['x'], 'beside.txt'));
    return ['dragover', 'drop'].map((kind) => {
      const event = new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data });
      document.querySelector('h1').dispatchEvent(event);
      return event.defaultPrevented;
    });
  })()`);
  assert.deepEqual(prevented, [true, true]);
});

test('an upload that ends while another page is open is shown there, and in the list afterwards', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/api/v1/files/uploads', async (route) => {
    await held;
    await route.continue();
  });
  const buffer = Buffer.from('slow tide');
  await page.getByText('No files yet').or(page.locator('table.list')).waitFor();
  await page.locator('input[type=file]').setInputFiles({ name: 'slow.txt', mimeType: 'text/plain', buffer });
  await page.getByRole('progressbar', { name: 'Upload of slow.txt' }).waitFor();
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Knowledge' }).click();
  await page.getByRole('heading', { name: 'Knowledge' }).waitFor();
  release();
  await page.getByRole('list', { name: 'Uploads' }).getByRole('link', { name: 'slow.txt' }).waitFor();
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Files' }).click();
  await page.locator('table.list').getByRole('link', { name: 'slow.txt' }).waitFor();
});

test('an upload that stopped half-way is listed with what has arrived, and can be deleted', async () => {
  const made = await it.server.api('POST', '/api/v1/uploads', {
    key: app.secretKey,
    headers: {
      ...tus,
      ...offsetType,
      'upload-length': '4096',
      'upload-metadata': metadataOf({ filename: 'film.mp4', content_type: 'video/mp4' }),
    },
    body: Buffer.alloc(1024),
  });
  assert.equal(made.status, 201, made.text);
  const page = await it.openAsDeveloper(app, '/console/files');
  const unfinished = page.getByRole('region', { name: 'Unfinished uploads' });
  await unfinished.getByText('1.0 KiB of 4.0 KiB').waitFor();
  await unfinished.getByRole('button', { name: 'Delete film.mp4' }).click();
  await page.getByRole('button', { name: 'Delete the upload' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await unfinished.waitFor({ state: 'detached' });
});

test('an upload shows its progress and can be stopped', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  // The server is not called: an active upload stays active until it is stopped.
  await page.route('**/api/v1/files/uploads', () => undefined);
  await page.locator('input[type=file]').setInputFiles({
    name: 'large.bin',
    mimeType: 'application/octet-stream',
    buffer: Buffer.alloc(1_000_000),
  });
  await page.getByRole('progressbar', { name: 'Upload of large.bin' }).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('large.bin').waitFor({ state: 'detached' });
});

test('an unreachable server is reported, with a retry that works', async () => {
  const page = await it.openAsDeveloper(app, '/console/kv');
  await page.route('**/api/v1/files?**', (route) =>
    route.fulfill({ status: 503, contentType: 'application/json', body: unavailable }),
  );
  await page.getByRole('link', { name: 'Files' }).click();
  await page.getByRole('alert').getByText('The database cannot be reached').waitFor();
  it.problems.length = 0; // the browser's own note of the 503
  await page.unroute('**/api/v1/files?**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('table.list').waitFor();
});

const unavailable = JSON.stringify({
  error: {
    type: 'server_error',
    code: 'unavailable',
    message: 'The database cannot be reached at the moment.',
    fields: [],
    details: {},
  },
});

test('a large upload that a reload of the page broke off is continued', async () => {
  const path = join(it.server.dataDir, 'survey.bin');
  writeFileSync(path, Buffer.alloc(33 * 1024 * 1024, 7));
  const choose = async (page: Page) => {
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('button', { name: 'Choose files' }).click(),
    ]);
    await chooser.setFiles(path);
  };
  const page = await it.openAsDeveloper(app, '/console/files');
  // The first part arrives, and the page is gone before the rest.
  let broken = false;
  let arrived = false;
  await page.route('**/api/v1/uploads/*', async (route) => {
    const request = route.request();
    if (broken || request.method() !== 'PATCH') return route.continue();
    broken = true;
    const part = await it.server.api('PATCH', new URL(request.url()).pathname, {
      key: app.secretKey,
      headers: { ...tus, ...offsetType, 'upload-offset': '0' },
      body: Buffer.alloc(20 * 1024 * 1024, 7),
    });
    assert.equal(part.status, 204);
    arrived = true;
    // The reload ends the request.
  });
  page.on('dialog', (dialog) => void dialog.accept());
  await choose(page);
  await until(() => arrived);
  await page.reload();
  await choose(page);
  await page.getByRole('list', { name: 'Uploads' }).getByText('Uploaded', { exact: true }).waitFor();
  const files = await it.server.db<{ size: number }[]>`select size from files where filename = 'survey.bin'`;
  assert.deepEqual(
    files.map(({ size }) => size),
    [33 * 1024 * 1024],
  );
  assert.equal((await it.server.db`select 1 from uploads where finished_at is null`).length, 0);
});
