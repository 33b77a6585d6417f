import { useEffect, useState } from 'react';

/** Longer than a frame takes; a page in the background paints nothing. */
const paintMaxMs = 100;

/** Calls `run` after the browser has painted what has changed so far. Returns a function that cancels it. */
export function afterPaint(run: () => void): () => void {
  let timer = setTimeout(run, paintMaxMs);
  const frame = requestAnimationFrame(() => {
    clearTimeout(timer);
    timer = setTimeout(run);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

/** Whether the component has been painted once. What is large and can wait a moment is drawn only then. */
export function usePainted(): boolean {
  const [painted, setPainted] = useState(false);
  useEffect(() => afterPaint(() => setPainted(true)), []);
  return painted;
}
