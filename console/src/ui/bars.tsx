import './bars.css';

/** One bar: its height by the value, its colour by the tone, and its words on hover. */
export type Bar = { key: string; value: number; label: string; tone?: 'good' | 'bad' | 'warn' | 'quiet' | undefined };

/** Values over time as bars, with the same numbers as a list for people who cannot see them. */
export function Bars({
  label,
  bars,
  height = 48,
  ends = false,
}: {
  label: string;
  bars: Bar[];
  height?: number;
  /** Whether the words of the first and the last bar are shown below them. */
  ends?: boolean;
}) {
  const most = Math.max(1, ...bars.map(({ value }) => value));
  return (
    <figure className="bars">
      <div aria-hidden="true" style={{ height }}>
        {bars.map(({ key, value, label: words, tone = '' }) => (
          <span key={key} title={words} className={tone}>
            <i style={{ height: value === 0 ? 1 : `max(3px, ${(value / most) * 100}%)` }} />
          </span>
        ))}
      </div>
      {ends ? (
        <p className="bar-ends faint" aria-hidden="true">
          <small>{bars[0]?.label}</small>
          <small>{bars.at(-1)?.label}</small>
        </p>
      ) : null}
      <figcaption className="hidden">
        {label}: {bars.map(({ label: words }) => words).join('; ')}
      </figcaption>
    </figure>
  );
}

const dayMs = 24 * 3_600_000;
const dayAndMonth = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** The last days until today, each with its value or zero. */
export function lastDays(days: number, values: Map<string, number>, describe: (value: number) => string): Bar[] {
  return Array.from({ length: days }, (_, at) => {
    const date = new Date(Date.now() - (days - 1 - at) * dayMs);
    const key = date.toISOString().slice(0, 10);
    const value = values.get(key) ?? 0;
    return { key, value, label: `${dayAndMonth.format(date)}: ${describe(value)}` };
  });
}
