import { useId } from 'react';
import { Field } from '../../ui/field.tsx';

/** The events that the server emits. An app's own events may have any other name. */
const knownEvents = [
  ...['file.created', 'file.updated', 'extraction.completed', 'extraction.failed'],
  ...['ingestion.succeeded', 'ingestion.failed', 'automation_run.completed', 'automation_run.failed'],
  ...['approval.requested', 'approval.answered'],
  ...['knowledge_source.created', 'knowledge_source.updated', 'knowledge_source.deleted'],
];

type Chosen = { all: boolean; known: string[]; own: string };

export function readChosen(events: string[]): Chosen {
  const own = events.filter((name) => name !== '*' && !knownEvents.includes(name));
  return {
    all: events.includes('*'),
    known: events.filter((name) => knownEvents.includes(name)),
    own: own.join(' '),
  };
}

export function eventsOf({ all, known, own }: Chosen): string[] {
  return all ? ['*'] : [...new Set([...known, ...own.split(/[\s,]+/).filter(Boolean)])];
}

/** Chooses all events, or individual ones of the server and the app by name. */
export function EventChoice({
  value,
  error,
  onChange,
}: {
  value: Chosen;
  error: string | undefined;
  onChange: (value: Chosen) => void;
}) {
  const noteId = useId();
  return (
    <>
      <fieldset className="checks" aria-describedby={error === undefined ? undefined : noteId}>
        <legend>Events</legend>
        <label className="check">
          <input
            type="checkbox"
            checked={value.all}
            onChange={(event) => onChange({ ...value, all: event.target.checked })}
          />
          All events
        </label>
        {knownEvents.map((name) => (
          <label key={name} className="check">
            <input
              type="checkbox"
              disabled={value.all}
              checked={value.all || value.known.includes(name)}
              onChange={(event) => {
                const others = value.known.filter((one) => one !== name);
                onChange({ ...value, known: event.target.checked ? [...others, name] : others });
              }}
            />
            {name}
          </label>
        ))}
      </fieldset>
      {error === undefined ? null : (
        <p id={noteId} className="hint wrong">
          {error}
        </p>
      )}
      <Field label="Your own events" hint="Names of events that you emit, separated by spaces.">
        {(id, described) => (
          <input
            id={id}
            {...described}
            className="code"
            spellCheck={false}
            disabled={value.all}
            placeholder="order.paid"
            value={value.own}
            onChange={(event) => onChange({ ...value, own: event.target.value })}
          />
        )}
      </Field>
    </>
  );
}
