import { ApiError, UsageError } from '../errors.ts';
import { findLocalFile, type LocalFile, type StoredFile, uploadLocalFile } from './local-file.ts';
import { formatBytes } from './progress.ts';
import { jsonLine, type Session } from './session.ts';

export type UploadOptions = {
  name?: string;
  type?: string;
  team?: string;
  user?: string;
  agent?: string;
  org?: string;
  share?: boolean;
};

/** `quarry upload <file…>`: uploads each as a stream. A failed upload does not stop the others. */
export async function upload(session: Session, paths: string[], options: UploadOptions): Promise<number> {
  if (paths.length > 1 && (options.name ?? options.type) !== undefined)
    throw new UsageError('--name and --type require exactly one file.');
  const files: LocalFile[] = [];
  for (const path of paths) files.push(await findLocalFile(path, options));
  let code = 0;
  for (const file of files) {
    try {
      const stored = await uploadLocalFile(session, file, ownersOf(options));
      await session.print(session.json ? jsonLine(stored) : describe(stored));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      session.say(`${file.name}: ${error.message}`);
      code = 1;
    }
  }
  return code;
}

function ownersOf({ team, user, agent, org, share }: UploadOptions): Record<string, string | undefined> {
  return { team, user, agent, org, share: share ? 'true' : undefined };
}

function describe(file: StoredFile & { share_url?: string }): string {
  const shared = file.share_url === undefined ? '' : `  ${file.share_url}`;
  return `${file.id}  ${file.filename}  ${formatBytes(file.size)}${shared}\n`;
}
