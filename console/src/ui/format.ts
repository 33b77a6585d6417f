/** Numbers, sizes and times as the console shows them. */

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/** Formats a size in binary units, as in the settings, the limits and the errors of the API. */
export function bytes(size: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = size;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** Formats a duration in its two largest units. */
export function duration(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < 1_000) return `${Math.round(whole)} ms`;
  if (whole < 60_000) return `${(whole / 1_000).toFixed(1)} s`;
  if (whole < 3_600_000) return `${Math.floor(whole / 60_000)} min ${Math.floor((whole % 60_000) / 1_000)} s`;
  return `${Math.floor(whole / 3_600_000)} h ${Math.floor((whole % 3_600_000) / 60_000)} min`;
}

export function ago(date: Date): string {
  const seconds = Math.round((Date.now() - date.getTime()) / 1_000);
  if (Math.abs(seconds) < 45) return 'now';
  for (const [unit, size] of [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ] as const)
    if (Math.abs(seconds) >= size || unit === 'minute') {
      const number = Math.max(1, Math.round(Math.abs(seconds) / size));
      if (unit === 'day' && number > 6) return date.toLocaleDateString(undefined, { dateStyle: 'medium' });
      return new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(seconds > 0 ? -number : number, unit);
    }
  return '';
}
