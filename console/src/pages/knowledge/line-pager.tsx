import { Button } from '../../ui/button.tsx';

export const linesShown = 400;

/** Which lines of a text are shown, with buttons to those before and after. Nothing if all are. */
export function LinePager({
  offset,
  total,
  onOffset,
}: {
  offset: number;
  total: number;
  onOffset: (offset: number) => void;
}) {
  if (total <= linesShown && offset <= 1) return null;
  const end = Math.min(offset + linesShown - 1, total);
  return (
    <>
      <Button disabled={offset <= 1} onClick={() => onOffset(Math.max(1, offset - linesShown))}>
        Earlier
      </Button>
      <span className="faint">
        Lines {offset}–{end} of {total}
      </span>
      <Button disabled={end >= total} onClick={() => onOffset(offset + linesShown)}>
        Later
      </Button>
    </>
  );
}
