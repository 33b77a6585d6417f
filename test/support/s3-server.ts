import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { S3Options } from '../../src/blob/s3.ts';

type S3Rver = { run(): Promise<AddressInfo>; close(): Promise<void> };
type S3RverOptions = {
  address: string;
  port: number;
  silent: boolean;
  directory: string;
  configureBuckets: { name: string; configs: string[] }[];
};

/** Published without types. */
const S3Server: new (options: S3RverOptions) => S3Rver = createRequire(import.meta.url)('@20minutes/s3rver');

/** A server of the S3 protocol on this machine with one empty bucket. It checks signatures. */
export async function startS3Server(): Promise<{ options: S3Options; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'quarry-s3-'));
  const bucket = 'blobs';
  const server = new S3Server({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: bucket, configs: [] }],
  });
  const { port } = await server.run();
  return {
    options: {
      bucket,
      region: 'us-east-1',
      endpoint: `http://127.0.0.1:${port}`,
      pathStyle: true,
      credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    },
    async stop() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
