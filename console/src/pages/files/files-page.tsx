import { type DragEvent, useRef, useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import { useSession } from '../../session.tsx';
import { Button, bytes, Empty, PageHead, Pager, Shown, State, Table, Time } from '../../ui/basics.tsx';
import { useDelayed } from '../../ui/use-delayed.ts';
import { useLoad } from '../../ui/use-load.ts';
import { Uploads, useUploads } from './uploads.tsx';

/** All visible files, and the drop zone for new ones. */
export function FilesPage() {
  const { place, isDeveloper } = useSession();
  const [search, setSearch] = useState('');
  const [page, setPage] = useState(1);
  const wanted = useDelayed(search);
  const org = isDeveloper ? place.org : undefined;
  const files = useLoad(`${wanted}/${page}`, () =>
    call('GET /api/v1/files', { query: { search: wanted, page, ...(org === undefined ? {} : { org }) } }),
  );
  const uploads = useUploads({ org }, () => {
    setPage(1);
    files.reload();
  });
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);

  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    uploads.add([...event.dataTransfer.files]);
  }

  return (
    <>
      <PageHead title="Files" lead="What you have uploaded, and what extractions and automations have written." />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same for keyboards */}
      <div
        className={over ? 'drop over' : 'drop'}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <p>Drop files here, or</p>
        <Button kind="primary" onClick={() => picker.current?.click()}>
          Choose files
        </Button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            uploads.add([...(event.target.files ?? [])]);
            event.target.value = '';
          }}
        />
      </div>
      <Uploads uploads={uploads} />
      <input
        type="search"
        className="search"
        aria-label="Search files by name"
        placeholder="Search by name"
        value={search}
        onChange={(event) => {
          setPage(1);
          setSearch(event.target.value);
        }}
      />
      <Shown loaded={files}>
        {(list) =>
          list.data.length === 0 ? (
            wanted === '' ? (
              <Empty title="No files yet">
                Drop a PDF, a picture or any other file above. You can then preview it, share it, extract it as Markdown
                and make it searchable.
              </Empty>
            ) : (
              <Empty title="No matching files" action={<Button onClick={() => setSearch('')}>Show all</Button>}>
                The search covers only file names.
              </Empty>
            )
          ) : (
            <>
              <Table columns={['Name', 'Type', { name: 'Size', look: 'number' }, 'Added']}>
                {list.data.map((file) => (
                  <tr key={file.id}>
                    <td className="main">
                      <Link href={`/files/${file.id}`}>{file.filename}</Link>
                      {file.shared ? <State value="shared" /> : null}
                    </td>
                    <td className="faint">{file.content_type.split(';')[0]}</td>
                    <td className="number">{bytes(file.size)}</td>
                    <td>
                      <Time at={file.created_at} />
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager page={list} onPage={setPage} />
            </>
          )
        }
      </Shown>
    </>
  );
}
