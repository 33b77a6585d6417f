/**
 * A name as it is shown: characters that turn the direction of text are written as codes. With them, the program
 * `report<U+202E>fdp.exe` would read as `reportexe.pdf`.
 */
export function withVisibleTurns(name: string): string {
  return name.replaceAll(
    /[\u202A-\u202E\u2066-\u2069]/g,
    (turn) => `<U+${turn.charCodeAt(0).toString(16).toUpperCase()}>`,
  );
}
