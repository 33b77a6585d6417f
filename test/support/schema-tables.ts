/** A table in migrations/schema.txt, with its columns, keys, indexes and triggers as text. */
export type SchemaTable = { name: string; text: string };

/** The tables of migrations/schema.txt. */
export function readTables(schema: string): SchemaTable[] {
  return schema.split(/^(?=(?:unlogged )?table )/m).flatMap((text) => {
    const name = /^(?:unlogged )?table (\w+)/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, text: text.split(/^\n|^CREATE /m)[0] ?? '' }];
  });
}
