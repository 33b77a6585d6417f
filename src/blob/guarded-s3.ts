import { Readable } from 'node:stream';
import { defined } from '../lib/defined.ts';
import { sdk } from './s3-sdk.ts';

/** The guarded fetcher: its checks of addresses and its shares of apps. */
type Fetch = (
  url: string,
  options: {
    lane: string;
    signal: AbortSignal;
    method: 'GET';
    headers: Record<string, string>;
    redirect: 'manual';
    bytesMax: number;
    timeoutMs: number;
  },
) => Promise<{ status: number; headers: Record<string, string>; body: AsyncIterable<Uint8Array> }>;

/** A bucket that others chose: its requests go through the guarded fetcher. */
type BucketOptions = {
  fetch: Fetch;
  /** The app, whose share of requests they use. */
  lane: string;
  endpoint: string | undefined;
  region: string;
  bucket: string;
  /** Absent for a public bucket. */
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | undefined;
  signal: AbortSignal;
};

/** An object as a listing describes it. */
export type BucketObject = { key: string; size: number; version: string };

type Bucket = {
  /** The pages of a listing, which a host may continue for ever: a page may be empty, or a repetition. */
  list(prefix: string): AsyncGenerator<BucketObject[]>;
  /** Undefined if it no longer exists. */
  read(key: string, sizeMax: number): Promise<{ bytes: Buffer; contentType: string | null } | undefined>;
  close(): void;
};

/** A request as the SDK has signed it. */
type SignedRequest = {
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
  query?: Record<string, string | string[] | null>;
  method: string;
  headers: Record<string, string>;
};

const requestTimeoutMs = 5 * 60_000;
/** A page has 1,000 keys of at most 1,024 bytes. It is parsed in one turn of the event loop. */
const listingBytesMax = 4 * 1024 * 1024;
const attemptsMax = 3;

export function openBucket({ fetch, lane, bucket, signal, ...options }: BucketOptions): Bucket {
  let bytesMax = listingBytesMax;
  const client = new sdk.S3Client({
    region: options.region,
    maxAttempts: attemptsMax,
    forcePathStyle: options.endpoint !== undefined,
    ...defined({ endpoint: options.endpoint }),
    ...(options.credentials === undefined
      ? { signer: { sign: async (request) => request } }
      : { credentials: options.credentials }),
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      metadata: { handlerProtocol: 'http/1.1' },
      async handle({ protocol, hostname, port, path, query, method, headers }: SignedRequest) {
        const address = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}${queryText(query)}`;
        const { host: _host, ...sent } = headers;
        const response = await fetch(address, {
          lane,
          signal,
          method: method as 'GET',
          headers: { ...sent, 'accept-encoding': 'identity' },
          // A signature is for one host.
          redirect: 'manual',
          bytesMax,
          timeoutMs: requestTimeoutMs,
        });
        const body = Readable.from(response.body);
        return { response: { statusCode: response.status, headers: response.headers, body } as never };
      },
    },
  });
  return {
    async *list(prefix) {
      let after: string | undefined;
      do {
        bytesMax = listingBytesMax;
        const page = await client.send(
          new sdk.ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ...defined({ ContinuationToken: after }) }),
        );
        yield (page.Contents ?? []).flatMap(({ Key, Size = 0, ETag = '', LastModified }) =>
          Key === undefined || Key.endsWith('/')
            ? []
            : [{ key: Key, size: Size, version: `${ETag} ${Size} ${LastModified?.toISOString() ?? ''}` }],
        );
        after = page.IsTruncated === true ? page.NextContinuationToken : undefined;
      } while (after !== undefined);
    },
    async read(key, sizeMax) {
      bytesMax = sizeMax;
      try {
        const { Body, ContentType } = await client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key: key }));
        const bytes = Buffer.from((await Body?.transformToByteArray()) ?? []);
        return { bytes, contentType: ContentType ?? null };
      } catch (error) {
        if (error instanceof sdk.S3ServiceException && error.name === 'NoSuchKey') return undefined;
        throw error;
      }
    },
    close: () => client.destroy(),
  };
}

/** What S3 said when it refused a request, for the caller; undefined for any other error. */
export function describeRefusal(error: unknown): string | undefined {
  if (!(error instanceof sdk.S3ServiceException)) return undefined;
  return `The bucket could not be read: ${error.name}.`;
}

function queryText(query: Record<string, string | string[] | null> | undefined): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    [value].flat().map((each) => `${encode(name)}=${encode(each ?? '')}`),
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** As the signature has it (RFC 3986). */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}
