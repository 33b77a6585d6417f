/** A backup or restore that failed. The message is for the operator. */
export class BackupError extends Error {}
