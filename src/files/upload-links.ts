import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Owned } from '../tenancy/visible.ts';

/** Everything that is decided when an upload link is made; whoever has the link brings the bytes alone. */
export type UploadPromise = Scope &
  Owned & {
    /** The file's id; it can be taken once. */
    id: string;
    filename: string;
    contentType: string;
    shared: boolean;
    sizeMax: number;
    /** SHA-256 in hex. */
    checksum?: string;
    /** Seconds since 1970. */
    expires: number;
  };

const purpose = 'upload';

/** The token of an upload link: what was promised in base64url, a dot, and our signature over it. */
export function sealUpload(secrets: Secrets, promise: UploadPromise): string {
  const text = Buffer.from(JSON.stringify(promise)).toString('base64url');
  return `${text}.${secrets.sign('signed-url', `${purpose}\0${text}`).toString('base64url')}`;
}

/** What was promised, or undefined when the token is not ours. Whether it has expired is for the caller to judge. */
export function openUpload(secrets: Secrets, token: string): UploadPromise | undefined {
  const [text, signature, rest] = token.split('.');
  if (text === undefined || signature === undefined || rest !== undefined) return undefined;
  if (!secrets.verify('signed-url', `${purpose}\0${text}`, Buffer.from(signature, 'base64url'))) return undefined;
  // We wrote it, as the signature has shown.
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as UploadPromise;
}
