import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { openAddOn } from '../lib/add-ons.ts';
import type { BlobStore } from './blob-store.ts';
import { openDiskBlobStore } from './disk.ts';

type Credentials = Pick<Config, 's3AccessKeyId' | 's3SecretAccessKey' | 's3SessionToken'>;
type BlobConfig = Credentials &
  Pick<Config, 'blobStore' | 'dataDir' | 's3Bucket' | 's3Region' | 's3Endpoint' | 's3PathStyle' | 's3Presign'>;

/** The configured blob store: `blobs` in the data directory, or a bucket. */
export async function openBlobStore(config: BlobConfig): Promise<BlobStore> {
  if (config.blobStore === 'disk') return openDiskBlobStore(join(config.dataDir, 'blobs'));
  if (config.s3Bucket === undefined) throw new Error('QUARRY_S3_BUCKET is not set.');
  const { openS3BlobStore } = await openS3(config.dataDir);
  const store = openS3BlobStore({
    bucket: config.s3Bucket,
    region: config.s3Region,
    endpoint: config.s3Endpoint,
    pathStyle: config.s3PathStyle,
    credentials: credentialsOf(config),
  });
  if (config.s3Presign) return store;
  const { presignedUrl: _left, ...withoutUrls } = store;
  return withoutUrls;
}

/** The code for S3. The SDK is large, so it is an add-on, and loaded only when S3 is used. Throws AddOnMissing. */
export async function openS3(dataDir: string): Promise<typeof import('./s3.ts')> {
  openAddOn('s3', dataDir);
  return await import('./s3.ts');
}

/** The code for buckets that others chose. Throws AddOnMissing. */
export async function openGuardedS3(dataDir: string): Promise<typeof import('./guarded-s3.ts')> {
  openAddOn('s3', dataDir);
  return await import('./guarded-s3.ts');
}

/** The configured credentials of S3; undefined for the usual AWS sources. */
export function credentialsOf({ s3AccessKeyId, s3SecretAccessKey, s3SessionToken }: Credentials) {
  if (s3AccessKeyId === undefined || s3SecretAccessKey === undefined) return undefined;
  return { accessKeyId: s3AccessKeyId, secretAccessKey: s3SecretAccessKey, sessionToken: s3SessionToken };
}
