import { useEffect, useRef } from 'react';
import { Link, useLocation } from 'wouter';
import { Button, IconButton } from './ui/button.tsx';
import { bytes, duration } from './ui/format.ts';
import { X } from './ui/icons.ts';
import { errorText } from './ui/notice.tsx';
import { Progress } from './ui/progress.tsx';
import { dismissUpload, isActive, type Upload, useUploads } from './uploads.ts';
import './uploads-tray.css';

/** Shows the uploads on every page. Those that are finished leave with the page on which that was seen. */
export function UploadsTray() {
  const uploads = useUploads();
  const [location] = useLocation();
  const latest = useRef(uploads);
  latest.current = uploads;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another page removes them
  useEffect(() => {
    for (const { id, done } of latest.current) if (done) dismissUpload(id);
  }, [location]);
  if (uploads.length === 0) return null;
  return (
    <ul className="uploads" aria-label="Uploads">
      {uploads.map((upload) => (
        <UploadRow key={upload.id} upload={upload} />
      ))}
    </ul>
  );
}

/** An upload in two lines, whatever happens to it: another upload's end must not move it from under the pointer. */
function UploadRow({ upload }: { upload: Upload }) {
  const { id, file, sent, stop, retry, done, error } = upload;
  const active = isActive(upload);
  return (
    <li>
      <div className="upload-text">
        <span className="cut">{done ? <Link href={`/files/${done.id}`}>{file.name}</Link> : file.name}</span>
        {error ? (
          <span className="wrong" role="alert">
            {errorText(error)}
          </span>
        ) : (
          <span className="faint">
            {active ? rateText(upload) : bytes(file.size)}
            {done ? (
              <>
                {' · '}
                <span>Uploaded</span>
              </>
            ) : null}
          </span>
        )}
      </div>
      {active ? (
        <>
          <Progress part={file.size === 0 ? 1 : sent / file.size} label={`Upload of ${file.name}`} />
          <Button kind="quiet" onClick={stop}>
            Stop
          </Button>
        </>
      ) : (
        <>
          {error ? <Button onClick={retry}>Try again</Button> : null}
          <IconButton label={`Dismiss ${file.name}`} onClick={() => dismissUpload(id)}>
            <X size={15} aria-hidden="true" />
          </IconButton>
        </>
      )}
      <span className="hidden" role="status">
        {done ? `${file.name} is uploaded` : ''}
      </span>
    </li>
  );
}

/** How much was sent, how fast, and how long the rest will take. */
function rateText({ file, sent, bytesPerSecond }: Upload): string {
  if (sent >= file.size) return 'being stored…';
  if (bytesPerSecond === 0) return `${bytes(file.size)}, waiting`;
  const left = duration(((file.size - sent) / bytesPerSecond) * 1_000);
  return `${bytes(Math.round(sent))} of ${bytes(file.size)} · ${bytes(Math.round(bytesPerSecond))}/s · ${left} left`;
}
