import { call } from '../../api/client.ts';
import { useLoad } from '../../ui/query.ts';

/** Names cached by id. A renamed file shows its new name after a page reload. */
const names = new Map<string, Promise<string>>();

/** The name of a file, or its id if the file was deleted. */
export function FileName({ id }: { id: string }) {
  const { data } = useLoad(['file name', id], () => findName(id));
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
