/** The robots.txt rules for this crawler, as a parser process reads them. */
export type RobotsFile = {
  rules: RobotsRule[];
  crawlDelayMs?: number;
  sitemaps: string[];
  /** The file could not be read, so its rules are unknown. */
  isUnavailable?: boolean;
};

/** `pattern` is in the form that `canonical` returns. */
export type RobotsRule = { allow: boolean; pattern: string };

/** RFC 9309 requires crawlers to read at least 500 KiB. */
export const robotsBytesMax = 512 * 1024;

/** Normalises a path or pattern for comparison: UTF-8 percent-encoded, hex in capitals, unreserved octets plain. */
export function canonical(path: string): string {
  return path
    .replace(/[^\x21-\x7e]+/g, (raw) => encodeURIComponent(raw.toWellFormed()))
    .replace(/%([0-9a-fA-F]{2})/g, (_all, hex: string) => {
      const letter = String.fromCharCode(Number.parseInt(hex, 16));
      return /[A-Za-z0-9\-._~]/.test(letter) ? letter : `%${hex.toUpperCase()}`;
    });
}
