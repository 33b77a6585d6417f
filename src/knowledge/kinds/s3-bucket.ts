import type { BucketObject } from '../../blob/guarded-s3.ts';
import { openGuardedS3 } from '../../blob/open.ts';
import { FetchError } from '../../content/fetch/errors.ts';
import { AddOnMissing } from '../../lib/add-ons.ts';
import { pattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';
import { ListingPull, listedName } from '../ingestion/listing.ts';
import { describeFailure, documentBytesMax } from '../ingestion/prepare.ts';
import type { IngestionRun } from '../ingestion/run.ts';
import type { IngestionError } from '../ingestion/store.ts';
import { readCredentials } from '../sources/credentials.ts';
import type { SourceRow } from '../sources/store.ts';
import type { SourceKind } from './kind.ts';
import { language, type Payload, readPayload, schedule, url } from './payload.ts';

const objectsDefault = 10_000;
const objectsMax = 1_000_000;
const regionDefault = 'us-east-1';

const payloadSchema = Type.Object({
  bucket: Type.String({
    ...pattern(
      '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      'must be the name of a bucket: 3 to 63 small letters, digits and . -',
    ),
    description: 'The name of the bucket.',
  }),
  url: Type.Optional({ ...url, description: 'The endpoint of a compatible service. Default: AWS, in the region.' }),
  region: Type.Optional(
    Type.String({
      ...pattern('^[a-z0-9-]{1,40}$', 'must be a region, such as us-east-1'),
      default: regionDefault,
      description: 'Default us-east-1.',
    }),
  ),
  prefix: Type.Optional(Type.String({ maxLength: 1_000, description: 'Only objects whose key begins with this.' })),
  max_files: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: objectsMax,
      default: objectsDefault,
      description: 'A pull of more objects fails and deletes nothing.',
    }),
  ),
  schedule,
  language,
});

export const s3Bucket: SourceKind = {
  type: 's3/bucket',
  label: 'S3 bucket',
  description: 'The objects of a bucket of S3 or a compatible service; a pull reads what has changed.',
  payload: payloadSchema,
  pushable: false,
  credentials: { members: ['access_key_id', 'secret_access_key', 'session_token'], origin: bucketOrigin },
  pull: { by: 'job', run: pullBucket },
};

/** The scheme, host and port that signed requests go to. */
function bucketOrigin(payload: Payload | null): string | undefined {
  const { bucket, url: endpoint, region } = readPayload(payloadSchema, payload);
  if (bucket === undefined) return undefined;
  if (endpoint !== undefined) return URL.canParse(endpoint) ? new URL(endpoint).origin : undefined;
  return `https://${bucket}.s3.${region ?? regionDefault}.amazonaws.com`;
}

async function pullBucket(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const { fetcher, secrets, dataDir } = run.deps;
  const given = readPayload(payloadSchema, source.payload);
  if (given.bucket === undefined) return { code: 'unsupported_content', message: 'The name of the bucket is invalid.' };
  const {
    access_key_id: accessKeyId,
    secret_access_key: secretAccessKey,
    session_token: sessionToken,
  } = readCredentials(secrets, s3Bucket, source);
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
  try {
    const s3 = await openGuardedS3(dataDir);
    const bucket = s3.openBucket({
      ...{ fetch: fetcher.fetch, lane: source.appId, signal: run.signal, credentials },
      ...{ bucket: given.bucket, region: given.region ?? regionDefault, endpoint: given.url },
    });
    try {
      return await pullObjects(run, source, bucket, given);
    } catch (error) {
      const refusal = s3.describeRefusal(error);
      if (refusal === undefined) throw error;
      return { code: 'fetch_failed', message: refusal };
    } finally {
      bucket.close();
    }
  } catch (error) {
    if (error instanceof AddOnMissing) return { code: 'add_on_missing', message: error.message };
    const failure = describeFailure(error) ?? run.describeRead(error);
    if (!failure) throw error;
    return failure;
  }
}

type Bucket = ReturnType<Awaited<ReturnType<typeof openGuardedS3>>['openBucket']>;
type Given = ReturnType<typeof readPayload<typeof payloadSchema>>;

async function pullObjects(
  run: IngestionRun,
  source: SourceRow,
  bucket: Bucket,
  given: Given,
): Promise<IngestionError | undefined> {
  const pull = new ListingPull(run, source);
  const most = given.max_files ?? objectsDefault;
  let objects = 0;
  for await (const page of bucket.list(given.prefix ?? '')) {
    // A page without objects counts like one object, so that every listing ends.
    objects += Math.max(1, page.length);
    if (objects > most) {
      const message = `The bucket has more than ${most} objects. Raise max_files, or choose fewer with prefix.`;
      return { code: 'repository_too_large', message };
    }
    const changed = await pull.findChanged(listed(page));
    await pull.write(changed.map((object) => entryOf(bucket, object)));
  }
  await pull.deleteUnlisted();
  return undefined;
}

function listed(page: BucketObject[]) {
  return page.map((object) => ({ ...object, id: listedName(object.key), version: listedName(object.version) }));
}

function entryOf(bucket: Bucket, { id, key, size, version }: BucketObject & { id: string }) {
  const filename = key.slice(key.lastIndexOf('/') + 1);
  return {
    ...{ id, version, url: null, title: filename, metadata: { key } },
    async read() {
      if (size > documentBytesMax)
        throw new FetchError('too_large', `A document can have at most ${documentBytesMax} bytes.`);
      const read = await bucket.read(key, documentBytesMax);
      if (read === undefined) return undefined;
      // Uploads without a type have this one.
      const contentType = read.contentType === 'application/octet-stream' ? null : read.contentType;
      return { bytes: read.bytes, isText: false, filename, contentType };
    },
  };
}
