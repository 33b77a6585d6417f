import {
  File,
  FileArchive,
  FileAudio,
  FileCode,
  FileImage,
  FileSpreadsheet,
  FileText,
  FileVideo,
} from '../../ui/icons.ts';
import './file-type.css';

const names: [part: string, name: string, icon: typeof File][] = [
  ['application/pdf', 'PDF', FileText],
  ['wordprocessingml', 'Word', FileText],
  ['application/msword', 'Word', FileText],
  ['opendocument.text', 'OpenDocument text', FileText],
  ['spreadsheetml', 'Excel', FileSpreadsheet],
  ['ms-excel', 'Excel', FileSpreadsheet],
  ['opendocument.spreadsheet', 'OpenDocument sheet', FileSpreadsheet],
  ['text/csv', 'CSV', FileSpreadsheet],
  ['presentationml', 'PowerPoint', FileText],
  ['ms-powerpoint', 'PowerPoint', FileText],
  ['text/markdown', 'Markdown', FileText],
  ['text/html', 'HTML', FileCode],
  ['json', 'JSON', FileCode],
  ['xml', 'XML', FileCode],
  ['text/plain', 'Text', FileText],
  ['message/rfc822', 'E-mail', FileText],
  ['zip', 'Archive', FileArchive],
  ['image/', 'Image', FileImage],
  ['audio/', 'Audio', FileAudio],
  ['video/', 'Video', FileVideo],
];

function describe(contentType: string): [name: string, icon: typeof File] {
  const [, name, icon] = names.find(([part]) => contentType.includes(part)) ?? [];
  return [name ?? contentType.split(';')[0] ?? contentType, icon ?? File];
}

/** The common name of a file type, with the media type on hover. */
export function FileType({ of }: { of: string }) {
  const [name] = describe(of);
  return (
    <span className="faint cut" title={of}>
      {name}
    </span>
  );
}

/** The small picture of a file in a table cell. */
export function FileThumb({ of }: { of: string }) {
  const [, Icon] = describe(of);
  return (
    <span className="file-thumb">
      <Icon size={16} strokeWidth={1.5} aria-hidden="true" />
    </span>
  );
}
