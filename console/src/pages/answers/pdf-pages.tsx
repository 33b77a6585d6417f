import { useState } from 'react';
import { Link } from 'wouter';
import { ApiError, call } from '../../api/client.ts';
import type { AnswerSentence, Citation } from '../../api/generated.ts';
import { useApi, useLoad } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';

type Place = NonNullable<AnswerSentence['quotes'][number]['places']>[number];
type Box = NonNullable<Place['boxes']>[number];
type Located = { file: string; filename: string; boxes: Box[]; pages: number[] };

const quoteCharactersMax = 10_000;
const pagesMax = 3;
const pictureWidth = 1024;

/** The pages of the stored PDF that a passage comes from, with its quotes framed. Nothing for other documents. */
export function PdfPages({ citation, quotes }: { citation: Citation; quotes: string[] }) {
  const located = useLoad(['quotes on pages', citation.document, citation.chunk, quotes], () =>
    locate(citation, quotes),
  );
  return (
    <Shown loaded={located}>
      {(found) =>
        found === null
          ? null
          : found.pages.map((page) => (
              <PdfPage
                key={page}
                file={found.file}
                filename={found.filename}
                page={page}
                boxes={found.boxes.filter((box) => box.page === page)}
              />
            ))
      }
    </Shown>
  );
}

/** Where the quotes stand, or if there are none the whole passage. Null if the document comes from no stored PDF. */
async function locate(citation: Citation, quotes: string[]): Promise<Located | null> {
  const { file } = await call('GET /api/v1/knowledge_documents/{document}', { path: { document: citation.document } });
  const stored = file === undefined ? undefined : await findFile(file);
  if (!stored?.content_type.startsWith('application/pdf')) return null;
  const wanted = quotes.length > 0 ? quotes : [citation.content.trim().slice(0, quoteCharactersMax)];
  const { statement } = await call('POST /api/v1/citations/verify', {
    body: { quotes: wanted, documents: [citation.document], boxes: true },
  });
  const boxes = statement.quotes.flatMap(({ places = [] }) => places.flatMap((place) => place.boxes ?? []));
  const { start_page } = citation;
  const pages = boxes.length > 0 ? boxes.map(({ page }) => page) : start_page === undefined ? [] : [start_page];
  return { file: stored.id, filename: stored.filename, boxes, pages: [...new Set(pages)].slice(0, pagesMax) };
}

/** A file that the caller may read. A document may be visible when its file is not. */
async function findFile(file: string) {
  try {
    return await call('GET /api/v1/files/{file}', { path: { file } });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function PdfPage({ file, filename, page, boxes }: { file: string; filename: string; page: number; boxes: Box[] }) {
  const [state, setState] = useState<'loading' | 'shown' | 'failed'>('loading');
  const picture = useApi('GET /api/v1/files/{file}', { path: { file }, query: { width: pictureWidth, page } });
  const url = picture.data?.picture_url;
  const [first] = boxes;
  const ratio = first === undefined ? '210 / 297' : `${first.page_width} / ${first.page_height}`;
  return (
    <figure className="pdf-page">
      <Shown loaded={picture}>
        {() =>
          url === undefined || state === 'failed' ? (
            <p className="notice">
              Page {page} cannot be shown as a picture. <Link href={`/files/${file}`}>Open the file</Link>
            </p>
          ) : (
            <div className="pdf-sheet" style={state === 'shown' ? {} : { aspectRatio: ratio }}>
              <img
                src={url}
                alt={`Page ${page} of ${filename}`}
                onLoad={() => setState('shown')}
                onError={() => setState('failed')}
              />
              {boxes.map((box) => (
                <span key={`${box.left} ${box.top}`} className="pdf-box" style={placeOf(box)} aria-hidden="true" />
              ))}
            </div>
          )
        }
      </Shown>
      <figcaption className="faint">
        Page {page} of <Link href={`/files/${file}`}>{filename}</Link>
        {boxes.length === 0 ? '. Where the passage stands on it is not known.' : null}
      </figcaption>
    </figure>
  );
}

function placeOf({ left, top, right, bottom, page_width, page_height }: Box) {
  const percent = (part: number, whole: number) => `${(100 * part) / whole}%`;
  return {
    left: percent(left, page_width),
    top: percent(top, page_height),
    width: percent(right - left, page_width),
    height: percent(bottom - top, page_height),
  };
}
