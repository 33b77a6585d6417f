/** Formats a number as a list does: `decimal`, `lowerLetter`, `upperRoman`, … */
export function formatNumber(value: number, format: string): string {
  switch (format) {
    case 'lowerLetter':
    case 'a':
      return letters(value);
    case 'upperLetter':
    case 'A':
      return letters(value).toUpperCase();
    case 'lowerRoman':
    case 'i':
      return roman(value);
    case 'upperRoman':
    case 'I':
      return roman(value).toUpperCase();
    case 'decimalZero':
      return String(value).padStart(2, '0');
    case 'none':
    case '':
      return '';
    default:
      return String(value);
  }
}

function letters(value: number): string {
  if (value < 1 || value > 780) return String(value);
  return String.fromCharCode(97 + ((value - 1) % 26)).repeat(Math.ceil(value / 26));
}

function roman(value: number): string {
  if (value < 1 || value > 3999) return String(value);
  const steps: [number, string][] = [
    [1000, 'm'],
    [900, 'cm'],
    [500, 'd'],
    [400, 'cd'],
    [100, 'c'],
    [90, 'xc'],
    [50, 'l'],
    [40, 'xl'],
    [10, 'x'],
    [9, 'ix'],
    [5, 'v'],
    [4, 'iv'],
    [1, 'i'],
  ];
  let left = value;
  let text = '';
  for (const [worth, digits] of steps)
    while (left >= worth) {
      text += digits;
      left -= worth;
    }
  return text;
}
