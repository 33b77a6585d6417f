import { type Logger, pino } from 'pino';
import { defined } from './defined.ts';

export type { Logger };

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** Patterns of secrets that must never be readable in a log line. */
const secretPatterns = [
  /\b(?:sk|pk|rt|dvt|sat|whs)_[A-Za-z0-9_-]{8,}/g,
  /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g,
  /([?&](?:token|signature|secret|password|X-Amz-Signature|X-Amz-Security-Token)=)[^&\s"]+/gi,
  // Members with these names at any depth. Pino's own redaction covers one level and costs more than everything else
  // in the line.
  /("(?:password|secret|token|access_token|refresh_token|authorization|cookie|set-cookie|x-api-key)":")(?:[^"\\]|\\.)*/gi,
  /(\bpostgres(?:ql)?:\/\/[^:@/\s]+:)[^@\s]+(?=@)/g,
];

/** Replaces credentials in free text (messages, URLs, stacks). */
export function redact(text: string): string {
  let out = text;
  for (const pattern of secretPatterns)
    out = out.replace(pattern, (_all, kept) => `${typeof kept === 'string' ? kept : ''}[redacted]`);
  return out;
}

/**
 * Writes structured JSON lines to standard error. Standard output is reserved for the output of commands.
 * @param addFields returns further members for each line
 */
export function createLogger(level: LogLevel, addFields?: () => object): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      ...defined({ mixin: addFields }),
    },
    { write: writeSoon },
  );
}

/** Lines of one event loop turn are written together: a system call per line would cost a busy server 10 %. */
function writeSoon(line: string): void {
  if (waiting === '') setImmediate(writeWaiting);
  waiting += line;
}

function writeWaiting(): void {
  const lines = waiting;
  waiting = '';
  if (lines !== '') process.stderr.write(redact(lines));
}

let waiting = '';
process.once('exit', writeWaiting);
