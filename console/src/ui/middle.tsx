import './middle.css';

const wholeMax = 32;
const endLength = 14;

/** A long value on one line. Without room, its middle is left out: its end often says the most, such as a file's type. */
export function Middle({ text }: { text: string }) {
  if (text.length <= wholeMax) return <>{text}</>;
  return (
    <span className="middle" title={text}>
      <span className="hidden">{text}</span>
      <span aria-hidden="true" className="cut">
        {text.slice(0, -endLength)}
      </span>
      <span aria-hidden="true">{text.slice(-endLength)}</span>
    </span>
  );
}
