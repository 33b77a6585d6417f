import './code.css';
import { Scroll } from './scroll.tsx';

/** Formatted JSON. */
export function Json({ value, label = 'JSON' }: { value: unknown; label?: string }) {
  return <Code text={JSON.stringify(value, null, 2)} label={label} />;
}

/** Preformatted text. */
export function Code({ text, label = 'Text' }: { text: string; label?: string }) {
  return (
    <Scroll label={label} className="code-box">
      <pre className="code">{text}</pre>
    </Scroll>
  );
}
