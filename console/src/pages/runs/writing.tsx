import { useEffect, useState } from 'react';
import { urlOf } from '../../api/client.ts';
import { readEvents } from '../../api/stream.ts';
import { Scroll } from '../../ui/scroll.tsx';

type Part = { node_id?: string; command_id?: string; text?: string };
type Text = { node: string; text: string };

/** What language models generate for this run, as it arrives. The journal has the whole text afterwards. */
export function Writing({ run }: { run: string }) {
  const [texts, setTexts] = useState<Record<string, Text>>({});
  useEffect(() => {
    const ended = new AbortController();
    const url = urlOf('/api/v1/automation_runs/{automation_run}/output_stream', { automation_run: run });
    const onPart = (part: Part, event: string) => {
      setTexts((now) => apply(now, part, event));
      return false;
    };
    void readEvents<Part>(url, onPart, ended.signal);
    return () => ended.abort();
  }, [run]);
  return Object.entries(texts).map(([command, { node, text }]) => (
    <section key={command} className="card" aria-label={`Text of ${node}`}>
      <h2>
        {node} <span className="live">Writing</span>
      </h2>
      <Scroll className="written" label={`Text of ${node} so far`}>
        {text}
      </Scroll>
    </section>
  ));
}

function apply(now: Record<string, Text>, { node_id: node, command_id: command, text }: Part, event: string) {
  if (event === 'reset') return {};
  if (node === undefined || command === undefined) return now;
  if (event === 'generation_started') return { ...now, [command]: { node, text: '' } };
  if (event === 'generation_text')
    return { ...now, [command]: { node, text: (now[command]?.text ?? '') + (text ?? '') } };
  return Object.fromEntries(Object.entries(now).filter(([one]) => one !== command));
}
