import { styleText } from 'node:util';
import { sanitizeForTerminal } from '../terminal.ts';

type Line = Record<string, unknown> & { level: string; time: string; msg: string };

/** Members of every line, or of no interest to a person. */
const hidden = new Set(['level', 'time', 'pid', 'msg', 'requestId', 'trace_id', 'span_id', 'trace_flags']);
const colours = { fatal: 'red', error: 'red', warn: 'yellow', info: 'cyan', debug: 'dim', trace: 'dim' } as const;

/**
 * A line of the server's log for a person: `12:00:01  POST /api/v1/files  201  3 ms`. Undefined for a line that does not
 * concern them: of requests whose id begins with `ownIds`, and of migrations.
 */
export function formatLogLine(text: string, { ownIds, isColoured }: { ownIds: string; isColoured: boolean }) {
  const line = readLine(text);
  if (line === undefined) return sanitizeForTerminal(text);
  if (String(line.requestId ?? '').startsWith(ownIds) || line.migrations !== undefined) return undefined;
  const paint = (style: Parameters<typeof styleText>[0], part: string) =>
    isColoured ? styleText(style, part, { validateStream: false }) : part;
  const head = paint('dim', formatTime(line.time));
  if (line.msg === 'request') {
    const { method, route, status, ms } = line;
    const style = Number(status) >= 500 ? 'red' : Number(status) >= 400 ? 'yellow' : 'green';
    return sanitizeForTerminal(`${head}  ${method} ${route}  ${paint(style, String(status))}  ${ms} ms`);
  }
  const { level, msg, err, ...rest } = line;
  const members = Object.entries(rest).filter(([name]) => !hidden.has(name));
  const shown = members.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const colour = colours[level as keyof typeof colours] ?? 'cyan';
  const label = level === 'info' ? '' : `${paint(colour, level)}  `;
  const details = shown.length === 0 ? '' : `  ${paint('dim', shown.join(' '))}`;
  return sanitizeForTerminal(`${head}  ${label}${msg}${details}${describeCause(err)}`);
}

/** The time of day on this machine. */
export function formatTime(time: string): string {
  return new Date(time).toTimeString().slice(0, 8);
}

function readLine(text: string): Line | undefined {
  try {
    const value = JSON.parse(text) as Partial<Line> | null;
    return typeof value?.msg === 'string' && typeof value.time === 'string' && typeof value.level === 'string'
      ? (value as Line)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The stack of an error, below its line. */
function describeCause(err: unknown): string {
  const { stack, message } = (err ?? {}) as { stack?: string; message?: string };
  const text = stack ?? message;
  return text === undefined ? '' : `\n    ${text.replaceAll('\n', '\n    ')}`;
}
