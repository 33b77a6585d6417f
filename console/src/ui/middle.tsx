import { withVisibleTurns } from './direction.ts';
import './middle.css';

const wholeMax = 32;
const endLength = 14;
const characters = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** A long value on one line. Without room, its middle is left out: its end often says the most, such as a file's type. */
export function Middle({ text: stored }: { text: string }) {
  const text = withVisibleTurns(stored);
  if (text.length <= wholeMax) return <>{text}</>;
  // An emoji or a letter with accents is several units of text, and stays whole.
  const end = characters.segment(text).containing(text.length - endLength)?.index ?? text.length;
  return (
    <span className="middle" dir="auto" title={text}>
      <span className="hidden">{text}</span>
      <span aria-hidden="true" className="cut">
        {text.slice(0, end)}
      </span>
      <span aria-hidden="true">{text.slice(end)}</span>
    </span>
  );
}
