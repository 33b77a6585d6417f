/** A parser process that takes two seconds to start. */
import { serve } from '../../src/content/parse/pool/worker-loop.ts';

await new Promise((resolve) => setTimeout(resolve, 2_000));
serve({
  'image-size': (bytes) => {
    if (Buffer.from(bytes).toString() === 'hang') for (;;);
    return { value: { width: 1, height: 2 } };
  },
});
