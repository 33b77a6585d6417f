/** Temporary system errors of a disk or a network: the same operation may succeed later. */
const temporaryCodes = new Set([
  ...['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EMFILE', 'ENFILE', 'ESTALE'],
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
]);

/** True when the disk is full, read-only or failing, or the bucket does not respond or fails. */
export function isBlobStoreUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, $metadata } = error as { code?: unknown; $metadata?: { httpStatusCode?: number } };
  if (typeof code === 'string' && temporaryCodes.has(code)) return true;
  // Errors of the S3 client, recognised without loading it.
  return error.name === 'TimeoutError' || (typeof $metadata === 'object' && !isRejected($metadata.httpStatusCode));
}

/** Whether S3 rejects the request itself. A 403 or 404 may be temporary: credentials or the bucket may be missing. */
function isRejected(status: number | undefined): boolean {
  return status === 400 || status === 411 || status === 412 || status === 416;
}
