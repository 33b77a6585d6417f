import { useEffect, useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import type { WorkflowJournal, WorkflowJournalEntry } from '../../api/generated.ts';
import { asApiError } from '../../ui/query.ts';

const journalPollMs = 700;
/** After a failure. */
const retryMs = 3_000;
const entriesMax = 10_000;

export type Journal = {
  about: WorkflowJournal | null | undefined;
  entries: WorkflowJournalEntry[];
  error: ReturnType<typeof asApiError> | undefined;
};

/** The journal from its start. Reads further entries whenever the run has changed or is active. */
export function useJournal(run: string, change: string | undefined): Journal {
  const [state, setState] = useState<Journal>({ about: undefined, entries: [], error: undefined });
  const known = useRef<WorkflowJournalEntry[]>([]);
  const cursor = useRef<string>(undefined);
  useEffect(() => {
    if (change === undefined) return;
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = /^(completed|failed|cancelled)/.test(change);
    const read = async () => {
      try {
        for (;;) {
          const page = await call('GET /api/v1/automation_runs/{automation_run}/journal', {
            path: { automation_run: run },
            query: { limit: 100, ...(cursor.current === undefined ? {} : { after_cursor: cursor.current }) },
          });
          if (!current) return;
          known.current = [...known.current, ...page.data];
          cursor.current = page.resume_cursor ?? cursor.current;
          setState({ about: page.journal, entries: known.current, error: undefined });
          if (!page.has_more || known.current.length >= entriesMax) break;
        }
        if (!over) timer = setTimeout(read, journalPollMs);
      } catch (error) {
        if (!current) return;
        setState((now) => ({ ...now, error: asApiError(error) }));
        timer = setTimeout(read, retryMs);
      }
    };
    void read();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [run, change]);
  return state;
}
