import { call } from '../../api/client.ts';
import { useLoad } from '../../ui/use-load.ts';

/** Names that were asked for, by id: a file that is renamed shows its new name after the page is loaded anew. */
const names = new Map<string, Promise<string>>();

/** What a file is called; its id when it is gone. */
export function FileName({ id }: { id: string }) {
  const { data } = useLoad(id, () => findName(id));
  return <>{data ?? '…'}</>;
}

function findName(id: string): Promise<string> {
  const known = names.get(id) ?? readName(id);
  names.set(id, known);
  return known;
}

async function readName(id: string): Promise<string> {
  try {
    return (await call('GET /api/v1/files/{file}', { path: { file: id } })).filename;
  } catch {
    names.delete(id);
    return id;
  }
}
