export async function run(_options: { out?: string | boolean | undefined }): Promise<number> {
  throw new Error('Not there yet.');
}
