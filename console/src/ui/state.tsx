import './state.css';

const tones: Record<string, string> = {
  ...{ running: 'active', pending: 'waiting', awaiting_callback: 'waiting', waiting: 'waiting', draft: 'quiet' },
  ...{ done: 'good', completed: 'good', succeeded: 'good', delivered: 'good', active: 'good', shared: 'good' },
  ...{ failed: 'bad', cancelled: 'quiet', paused: 'quiet', revoked: 'quiet', skipped: 'quiet' },
};

/** A state: a coloured dot and its name. */
export function State({ value, label }: { value: string; label?: string }) {
  return (
    <span className={`state ${tones[value] ?? 'quiet'}`}>
      <span>{label ?? value.replaceAll('_', ' ')}</span>
    </span>
  );
}
