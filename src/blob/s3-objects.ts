import type { S3Client } from '@aws-sdk/client-s3';
import type { BlobStat } from './blob-store.ts';
import { sdk } from './s3-sdk.ts';

const { AbortMultipartUploadCommand, DeleteObjectCommand, HeadObjectCommand, S3ServiceException } = sdk;

export async function findStat(client: S3Client, bucket: string, key: string): Promise<BlobStat | undefined> {
  try {
    const { ContentLength } = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }));
    return { size: ContentLength ?? 0 };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

export async function remove(client: S3Client, bucket: string, key: string): Promise<void> {
  try {
    await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

/** Deletes the parts of a multipart upload. */
export async function abort(client: S3Client, bucket: string, key: string, uploadId: string): Promise<void> {
  try {
    await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key: key, UploadId: uploadId }));
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

export function isAbsent(error: unknown): boolean {
  return error instanceof S3ServiceException && ['NoSuchKey', 'NotFound', 'NoSuchUpload'].includes(error.name);
}
