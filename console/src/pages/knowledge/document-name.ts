/** The name of a document with this id: its title, or where it comes from. A title may be empty or blank. */
export function documentName(
  { title, source_url }: { title?: string | null | undefined; source_url?: string | null | undefined },
  id: string,
): string {
  return title?.trim() || source_url || id;
}
