/** An amount in the currency of the prices. The API counts in millionths. */
export function money(millionths: number): string {
  const value = millionths / 1_000_000;
  return value === 0 ? '0.00' : value < 0.01 ? value.toFixed(4) : value.toFixed(2);
}
