import { defined } from '../../../lib/defined.ts';
import type { PartWatch, TaskReply } from '../pool/process.ts';
import { type ParsedDocument, type ParsedPart, ParseError } from '../types.ts';
import { CollectedParts, type PartEvent, type ResumePoint } from './attachments.ts';

/** One process that reads, for a limited time, what the processes before it left. */
type Turn = { deadlineMs: number; resume?: ResumePoint; watch: PartWatch };

/** The maximum number of attachments that may end their process, because each costs the start of a new one. */
const failuresMax = 5;
const turnMsMin = 300;

/**
 * Reads a document. An attachment of a mail that crashes or hangs ends its process but costs only itself: the next
 * process resumes after it, within the remaining time. Returns the reply, or the mail that was read in parts.
 */
export async function readInTurns(
  timeMs: number,
  run: (turn: Turn) => Promise<TaskReply>,
): Promise<TaskReply | (ParsedDocument & { parts: ParsedPart[] })> {
  const collected = new CollectedParts();
  let leftMs = timeMs;
  let resume: ResumePoint | undefined;
  for (let failures = 1; ; failures++) {
    let startedMs = performance.now();
    const watch: PartWatch = {
      onStart: () => {
        startedMs = performance.now();
      },
      onPart: (event, [text]) => collected.add(withText(event, text)),
    };
    try {
      const reply = await run({ deadlineMs: leftMs, watch, ...defined({ resume }) });
      return isApart(reply.value) ? collected.finish() : reply;
    } catch (error) {
      if (!(error instanceof ParseError) || !collected.hasMail) throw error;
      leftMs -= performance.now() - startedMs;
      resume = collected.fail(error);
      if (resume !== undefined && failures < failuresMax && leftMs > turnMsMin) continue;
      collected.failOthers(whyNotRead(resume === undefined ? error : undefined, leftMs));
      return collected.finish();
    }
  }
}

function whyNotRead(error: ParseError | undefined, leftMs: number): { code: string; message: string } {
  if (error !== undefined) return { code: error.code, message: error.message };
  return leftMs > turnMsMin
    ? {
        code: 'extraction_failed',
        message: `The attachment was not read, because ${failuresMax} others made their parser crash or time out.`,
      }
    : { code: 'timeout', message: 'The time for the mail ended before this attachment was read.' };
}

function isApart(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'apart' in value;
}

function withText(event: PartEvent, text: Uint8Array | undefined): PartEvent {
  if (event.what !== 'read') return event;
  return { ...event, document: { ...event.document, markdown: new TextDecoder().decode(text) } };
}
