/** The members of a file in responses that tests check. */
export type FileBody = {
  id: string;
  filename: string;
  content_type: string;
  size: number;
  checksum: string;
  url: string;
  share_url?: string;
  shared: boolean;
  image_source?: { file?: string; url?: string; mime_type?: string; width?: number; height?: number };
  org?: string;
  team?: string;
  user?: string;
  agent?: string;
  acl?: { grants: { principal_type: string; principal?: string; actions: string[] }[] };
  provider_metadata: Record<string, unknown>;
  created_at: string;
  updated_at: string;
};

/** A PNG of one pixel. */
export const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Bytes that differ by position, so that a range taken from the wrong position is noticed. */
export function bytesOf(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at++) bytes[at] = (at * 31 + (at >> 8)) & 0xff;
  return bytes;
}
