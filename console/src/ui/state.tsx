import './state.css';

const tones: Record<string, string> = {
  ...{ running: 'active', pending: 'waiting', awaiting_callback: 'waiting', waiting: 'waiting', draft: 'quiet' },
  ...{ done: 'good', completed: 'good', succeeded: 'good', delivered: 'good', active: 'good', shared: 'good' },
  ...{ failed: 'bad', cancelled: 'quiet', paused: 'quiet', revoked: 'quiet', skipped: 'quiet' },
};

/** A state as a coloured label. */
export function State({ value, label }: { value: string; label?: string }) {
  return <span className={`state ${tones[value] ?? 'quiet'}`}>{label ?? value.replaceAll('_', ' ')}</span>;
}
