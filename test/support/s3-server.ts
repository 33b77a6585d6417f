import { startFauxqs } from 'fauxqs';
import type { S3Options } from '../../src/blob/s3.ts';

/** An S3 server on this machine with one empty bucket, kept in memory. It accepts any signature. */
export async function startS3Server(): Promise<{ options: S3Options; stop(): Promise<void> }> {
  const bucket = 'blobs';
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  server.createBucket(bucket);
  return {
    options: {
      bucket,
      region: 'us-east-1',
      endpoint: `http://127.0.0.1:${server.port}`,
      pathStyle: true,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    },
    stop: () => server.stop(),
  };
}
