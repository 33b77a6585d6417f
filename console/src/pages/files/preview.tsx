import { type ReactNode, useEffect, useState } from 'react';
import { ApiError } from '../../api/client.ts';
import type { StoredFile } from '../../api/generated.ts';
import { Code } from '../../ui/code.tsx';
import './preview.css';
import { bytes } from '../../ui/format.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { Empty } from '../../ui/page.tsx';
import { useLoad } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';

const textBytesMax = 512 * 1024;
const pdfBytesMax = 30 * 1024 * 1024;

/** A preview of types that a browser can show without executing them. */
export function Preview({ file }: { file: StoredFile }) {
  const type = (file.content_type.split(';')[0] ?? '').trim().toLowerCase();
  if (type.startsWith('image/')) return <ImagePreview file={file} />;
  if (type === 'application/pdf') return <PdfPreview file={file} />;
  if (isText(type)) return <TextPreview file={file} markdown={type === 'text/markdown'} />;
  return <NoPreview />;
}

function NoPreview() {
  return (
    <Empty title="No preview">
      Browsers cannot show this type. Download the file, or extract its text as Markdown.
    </Empty>
  );
}

/** The small picture, or the file itself if there is none. */
function ImagePreview({ file }: { file: StoredFile }) {
  const sources = [file.picture_url, file.url].filter((url) => url !== undefined);
  const [failed, setFailed] = useState(0);
  const source = sources[failed];
  if (source === undefined) return <NoPreview />;
  return <img className="preview-image" src={source} alt={file.filename} onError={() => setFailed(failed + 1)} />;
}

/** A small picture of a file whose name is shown beside it. Without a picture, shows the children. */
export function Thumbnail({ url, children = null }: { url: string | undefined; children?: ReactNode }) {
  const [failed, setFailed] = useState<string>();
  if (url === undefined || url === failed) return children;
  return <img className="thumbnail" src={url} alt="" loading="lazy" onError={() => setFailed(url)} />;
}

function isText(type: string): boolean {
  return type.startsWith('text/') || /^application\/(.+\+)?(json|xml|yaml|x-ndjson|javascript|sql|toml)$/.test(type);
}

/** Reads the contents from the signed URL, at most `limit` bytes. */
export async function readContents(file: StoredFile, limit?: number): Promise<Response> {
  const range: Record<string, string> =
    limit !== undefined && file.size > limit ? { range: `bytes=0-${limit - 1}` } : {};
  const response = await fetch(file.url, { headers: range }).catch(() => undefined);
  if (response?.ok) return response;
  const message = response
    ? `The contents could not be loaded (${response.status}).`
    : 'The browser may not read the file store. Its CORS rules must allow this page.';
  throw new ApiError(0, { code: 'unavailable', message });
}

function TextPreview({ file, markdown }: { file: StoredFile; markdown: boolean }) {
  const loaded = useLoad(['file text', file.id, file.checksum], async () =>
    (await readContents(file, textBytesMax)).text(),
  );
  return (
    <Shown loaded={loaded}>
      {(text) => (
        <>
          {file.size > textBytesMax ? (
            <p className="notice">
              The first {bytes(textBytesMax)} of {bytes(file.size)}. Download the file to read the rest.
            </p>
          ) : null}
          {text === '' ? <p className="faint">The file is empty.</p> : null}
          {markdown ? <MarkdownText text={text} /> : <Code text={text} />}
        </>
      )}
    </Shown>
  );
}

/** Shows a PDF in the browser's viewer from memory: the file's URL itself cannot be framed. */
function PdfPreview({ file }: { file: StoredFile }) {
  const [url, setUrl] = useState<string>();
  const small = file.size <= pdfBytesMax;
  const loaded = useLoad(
    ['file pdf', file.id, file.checksum],
    async () => new Blob([await (await readContents(file)).arrayBuffer()], { type: 'application/pdf' }),
    { enabled: small },
  );
  const { data } = loaded;
  useEffect(() => {
    if (!data) return;
    const objectUrl = URL.createObjectURL(data);
    setUrl(objectUrl);
    return () => URL.revokeObjectURL(objectUrl);
  }, [data]);
  if (!small)
    return (
      <>
        <Thumbnail url={file.picture_url} />
        <Empty title="Too large for a preview">Download it to read it.</Empty>
      </>
    );
  return (
    <Shown loaded={loaded}>
      {() =>
        url === undefined ? null : (
          <iframe className="preview-pdf" src={`${url}#navpanes=0&view=FitH`} title={file.filename} />
        )
      }
    </Shown>
  );
}
