/** System errors of a disk or a network that may pass: the same operation may succeed later. */
const passingCodes = new Set([
  ...['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EMFILE', 'ENFILE', 'ESTALE'],
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
]);

/** True when the disk is full, read-only or failing, or the bucket does not respond or fails. */
export function isBlobStoreUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, $metadata } = error as { code?: unknown; $metadata?: { httpStatusCode?: number } };
  if (typeof code === 'string' && passingCodes.has(code)) return true;
  // Errors of the S3 client, recognised without loading it.
  return error.name === 'TimeoutError' || (typeof $metadata === 'object' && !isRefusal($metadata.httpStatusCode));
}

/** A response that blames the request itself; 403 and 404 may blame credentials or a bucket that is missing for now. */
function isRefusal(status: number | undefined): boolean {
  return status === 400 || status === 411 || status === 412 || status === 416;
}
