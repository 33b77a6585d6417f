/** Parses a typed JSON object. Throws with the position of the error. */
export function parseObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('This must be a JSON object, such as {"name": "value"}.');
  return value as Record<string, unknown>;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}
