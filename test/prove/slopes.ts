export type Series = {
  name: string;
  unit: string;
  /** A smaller change than this is noise. */
  floor: number;
  /** Whether the series has to be flat. */
  isJudged: boolean;
  points: [seconds: number, value: number][];
};

type Verdict = {
  name: string;
  unit: string;
  start: number;
  last: number;
  perHour: number;
  isFlat: boolean;
  isJudged: boolean;
};

/** The share of its mean by which a flat series may change during the judged time. */
const changeShareMax = 0.1;
/** Fewer points are not enough to judge. */
const judgedPointsMin = 3;

/** Fits a line through the points after the warm-up, and says whether the series is flat. */
export function judge({ name, unit, floor, isJudged, points }: Series, warmUpShare: number): Verdict {
  const judged = points.slice(Math.floor(points.length * warmUpShare));
  const seconds = (judged.at(-1)?.[0] ?? 0) - (judged[0]?.[0] ?? 0);
  const slope = slopeOf(judged);
  const mean = judged.reduce((sum, [, value]) => sum + value, 0) / Math.max(1, judged.length);
  const isFlat =
    judged.length >= judgedPointsMin && Math.abs(slope * seconds) <= Math.max(floor, mean * changeShareMax);
  const [start = 0, last = 0] = [judged[0]?.[1], judged.at(-1)?.[1]].map((value) => round(value ?? 0));
  return { name, unit, start, last, perHour: round(slope * 3_600), isFlat, isJudged };
}

/** The slope by least squares. */
function slopeOf(points: Series['points']): number {
  const count = points.length;
  if (count < 2) return 0;
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / count;
  const above = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const below = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return below === 0 ? 0 : above / below;
}

const width = 800;
const panelHeight = 130;
const left = 60;

/** Draws one panel for each series, as an SVG file. */
export function drawPlot(series: Series[], verdicts: Verdict[]): string {
  const panels = series.map(({ name, unit, points }, index) => {
    const lastSecond = points.at(-1)?.[0] ?? 1;
    const highest = Math.max(1, ...points.map(([, value]) => value)) * 1.1;
    const top = index * panelHeight + 30;
    const height = panelHeight - 45;
    const line = points
      .map(
        ([x, y]) =>
          `${round(left + (x / lastSecond) * (width - left - 20))},${round(top + height * (1 - y / highest))}`,
      )
      .join(' ');
    const verdict = verdicts[index];
    const title = `${name}: ${verdict?.perHour} ${unit} an hour`;
    return [
      `<text x="${left}" y="${top - 8}" font-weight="bold">${title}</text>`,
      `<text x="${left - 6}" y="${top + 8}" text-anchor="end">${round(highest)}</text>`,
      `<text x="${left - 6}" y="${top + height}" text-anchor="end">0</text>`,
      `<path d="M${left} ${top}V${top + height}H${width - 20}" stroke="#999" fill="none"/>`,
      `<polyline points="${line}" stroke="#2563eb" fill="none"/>`,
    ].join('\n');
  });
  const height = series.length * panelHeight + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${panels.join('\n')}
</svg>
`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
