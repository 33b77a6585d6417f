export type Line = { name: string; points: { at: number; ms: number }[] };

const [width, height] = [900, 520];
const plot = { left: 64, top: 48, right: 560, bottom: 470 };
const colours = ['#2563eb', '#d97706', '#059669', '#dc2626', '#7c3aed', '#0891b2', '#be185d', '#4d7c0f'];

/** Draws lines over two logarithmic scales as an SVG, with whole powers of ten marked. */
export function drawGrowth(title: string, lines: readonly Line[]): string {
  const all = lines.flatMap(({ points }) => points);
  const [atMin, atMax] = [Math.min(...all.map(({ at }) => at)), Math.max(...all.map(({ at }) => at))];
  const msMin = 10 ** Math.floor(Math.log10(Math.min(...all.map(({ ms }) => ms))));
  const msMax = 10 ** Math.ceil(Math.log10(Math.max(...all.map(({ ms }) => ms))));
  const x = (at: number) => scale(at, atMin, atMax, plot.left, plot.right);
  const y = (ms: number) => scale(ms, msMin, msMax, plot.bottom, plot.top);

  const parts = [`<rect width="${width}" height="${height}" fill="#ffffff"/>`];
  parts.push(text(plot.left, 28, title, 'font-size="16" font-weight="600"'));
  for (let at = atMin; at <= atMax; at *= 10) {
    parts.push(path([x(at), plot.top, x(at), plot.bottom], '#e5e7eb'));
    parts.push(text(x(at), plot.bottom + 20, at.toLocaleString('en-US'), 'text-anchor="middle"'));
  }
  for (let ms = msMin; ms <= msMax; ms *= 10) {
    parts.push(path([plot.left, y(ms), plot.right, y(ms)], '#e5e7eb'));
    parts.push(text(plot.left - 8, y(ms) + 4, `${Number(ms.toPrecision(1))} ms`, 'text-anchor="end"'));
  }
  for (const [index, { name, points }] of lines.entries()) {
    const colour = colours[index % colours.length] ?? 'black';
    const dashes = index < colours.length ? '' : ' stroke-dasharray="6 4"';
    const legend = plot.top + 10 + index * 26;
    parts.push(
      path(
        points.flatMap(({ at, ms }) => [x(at), y(ms)]),
        colour,
        `stroke-width="2"${dashes}`,
      ),
      path([plot.right + 20, legend, plot.right + 50, legend], colour, `stroke-width="2"${dashes}`),
      text(plot.right + 58, legend + 4, name, ''),
    );
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#111827">\n<title>${title}</title>\n${parts.join('\n')}\n</svg>\n`;
}

function scale(value: number, min: number, max: number, from: number, to: number): number {
  const part = max === min ? 0 : Math.log(value / min) / Math.log(max / min);
  return Math.round((from + part * (to - from)) * 10) / 10;
}

function path(numbers: readonly number[], colour: string, more = ''): string {
  return `<polyline points="${numbers.join(' ')}" fill="none" stroke="${colour}" ${more}/>`;
}

function text(x: number, y: number, words: string, more: string): string {
  return `<text x="${x}" y="${y}" ${more}>${words.replace(/&/g, '&amp;').replace(/</g, '&lt;')}</text>`;
}
