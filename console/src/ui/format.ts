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

// Made once: making one takes longer than all else that a cell of a table needs.
const compactNumber = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const mediumDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** Formats a large number in three digits: 4,120 is "4.12k". Smaller ones stay whole. */
export function compact(number: number): string {
  if (Math.abs(number) < 10_000) return number.toLocaleString('en');
  return compactNumber.format(number).toLowerCase();
}

/** Formats a moment relative to now: "12 min ago", "in 33 s". Beyond six days, the date. */
export function ago(date: Date, now = Date.now()): string {
  const seconds = Math.round((now - date.getTime()) / 1_000);
  const size = Math.abs(seconds);
  if (size < 5) return 'now';
  if (size > 6.5 * 86_400) return mediumDate.format(date);
  const text =
    size < 60
      ? `${size} s`
      : size < 3_600
        ? `${Math.round(size / 60)} min`
        : size < 86_400
          ? `${Math.round(size / 3_600)} h`
          : `${Math.round(size / 86_400)} d`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}
