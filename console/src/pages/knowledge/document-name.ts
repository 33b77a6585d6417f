/** The name of a document with this id: its title, or where it comes from. A title may be empty or blank. */
export function documentName(
  { title, source_url }: { title?: string | null; source_url?: string | null },
  id: string,
): string {
  return title?.trim() || source_url || id;
}
