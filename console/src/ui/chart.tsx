import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './chart.css';

type Series = { name: string; tone: 'accent' | 'bad' | 'warn'; values: number[] };

/** Lines over days, with the numbers as a table for people who cannot see the lines. */
export default function Chart({ label, times, series }: { label: string; times: number[]; series: Series[] }) {
  const host = useRef<HTMLDivElement>(null);
  const scheme = useScheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are those of the scheme
  useEffect(() => {
    const box = host.current;
    if (!box) return;
    const styles = getComputedStyle(box);
    const colour = (tone: string) => styles.getPropertyValue(`--chart-${tone}`).trim();
    const axis = { stroke: colour('text'), grid: { stroke: colour('grid'), width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: 220,
        scales: { x: { range: () => widen(times[0] ?? 0, times.at(-1) ?? 0) } },
        series: [
          { value: '{YYYY}-{MM}-{DD}' },
          ...series.map(({ name, tone }) => ({ label: name, stroke: colour(tone), width: 2, points: { size: 6 } })),
        ],
        axes: [
          {
            ...axis,
            values: (_self, ticks) =>
              ticks.map((at) => new Date(at * 1_000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })),
          },
          { ...axis, size: 60 },
        ],
      },
      [times, ...series.map(({ values }) => values)],
      box,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 220 }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, series, scheme]);
  return (
    <figure className="chart">
      <div ref={host} aria-hidden="true" />
      <table className="hidden">
        <caption>{label}</caption>
        <thead>
          <tr>
            <th>Day</th>
            {series.map(({ name }) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at, row) => (
            <tr key={at}>
              <td>{new Date(at * 1_000).toISOString().slice(0, 10)}</td>
              {series.map(({ name, values }) => (
                <td key={name}>{values[row]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

const daySeconds = 86_400;

/** Widens the range to a few days, because a single day has no width. */
function widen(from: number, to: number): [number, number] {
  return to - from >= 6 * daySeconds ? [from, to] : [to - 6 * daySeconds, to + daySeconds / 2];
}

const system = window.matchMedia('(prefers-color-scheme: dark)');
const readScheme = () => `${document.documentElement.dataset.theme} ${system.matches}`;

/** The colour scheme in use, chosen in the page or by the system. A canvas does not follow it by itself. */
function useScheme(): string {
  const [scheme, setScheme] = useState(readScheme);
  useEffect(() => {
    const change = () => setScheme(readScheme());
    const chosen = new MutationObserver(change);
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    system.addEventListener('change', change);
    return () => {
      chosen.disconnect();
      system.removeEventListener('change', change);
    };
  }, []);
  return scheme;
}
