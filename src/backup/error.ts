/** A backup or restore that cannot be, in words for whoever runs it. */
export class BackupError extends Error {}
