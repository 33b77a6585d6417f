/**
 * Limits of a parse, each with its unit. The pool limits memory and time; these limits stop work that would waste
 * them.
 */
export const parseLimits = {
  markdownCharactersMax: 32 * 1024 * 1024,
  pdfPagesMax: 10_000,
  zipEntriesMax: 20_000,
  zipEntryBytesMax: 128 * 1024 * 1024,
  zipTotalBytesMax: 256 * 1024 * 1024,
  xmlDepthMax: 512,
  xmlNodesMax: 4_000_000,
  sheetRowsMax: 100_000,
  sheetCellsMax: 1_000_000,
  /** Cells of tables, including empty ones: a small file can have billions of those. */
  tablePlacesMax: 4_000_000,
  /** A picture is held in memory at four bytes per pixel. */
  imagePixelsMax: 40_000_000,
  /** The same for a picture that is scaled down. With the copies that this takes, 512 MB of memory allow no more. */
  smallPicturePixelsMax: 24_000_000,
  attachmentsMax: 50,
  attachmentBytesMax: 32 * 1024 * 1024,
  /** How deep mails may be attached to mails. */
  attachmentDepthMax: 3,
} as const;
