import { serve, type Task } from '../parse/pool/worker-loop.ts';
import type { StemLanguage } from '../terms.ts';
import { readBatch } from './batch.ts';
import { Trainer } from './trainer.ts';

/** The program of a learning process, which trains one model. */
let trainer: Trainer | undefined;
let folding: ReturnType<Trainer['startFolding']> | undefined;

function started<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('A learning process received its tasks in the wrong order.');
  return part;
}

const tasks: Record<string, Task> = {
  start: (taken, fields) => {
    trainer = new Trainer({
      languages: fields.languages as StemLanguage[],
      dimensions: Number(fields.dimensions),
      firstOrdinal: Number(fields.firstOrdinal),
      taken: Uint8Array.from(taken),
    });
    return { value: null };
  },
  postings: (bytes) => {
    for (const { term, postings } of readBatch(bytes)) started(trainer).addPostings(term, postings);
    return { value: null };
  },
  train: () => ({ value: started(trainer).train() }),
  words: (_bytes, fields) => {
    const { vectors, ...value } = started(trainer).readWords(Number(fields.from), Number(fields.count));
    return { value, blobs: [vectors] };
  },
  'start-folding': (_bytes, fields) => {
    folding = started(trainer).startFolding(Number(fields.from), Number(fields.to));
    return { value: null };
  },
  fold: (bytes) => {
    for (const { term, postings } of readBatch(bytes)) started(folding).addPostings(term, postings);
    return { value: null };
  },
  codes: () => {
    const codes = started(folding).finish();
    folding = undefined;
    return { value: null, blobs: [codes] };
  },
};

serve(tasks);
