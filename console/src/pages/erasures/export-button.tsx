import { useEffect, useRef, useState } from 'react';
import { download } from '../../api/client.ts';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { bytes } from '../../ui/format.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';
import { saveFile } from '../../ui/save.ts';

const shownEveryMs = 300;

/** Saves everything that is stored about a user as one archive, for callers who may read it. */
export function ExportButton({ user }: { user: string }) {
  const { isDeveloper } = useSession();
  const [arrived, setArrived] = useState<number>();
  const stop = useRef<AbortController>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const save = useAction(
    async () => {
      stop.current = new AbortController();
      const { signal } = stop.current;
      let shownAt = 0;
      const onBytes = (count: number) => {
        if (performance.now() - shownAt < shownEveryMs) return;
        shownAt = performance.now();
        setArrived(count);
      };
      try {
        saveFile(`${user}.zip`, await download('GET /api/v1/users/{user}/export', { user }, { signal, onBytes }));
      } finally {
        setArrived(undefined);
      }
    },
    { say: 'The archive is complete.' },
  );
  if (!isDeveloper) return null;
  return (
    <>
      <Button busy={save.busy} onClick={() => save.run()}>
        {save.busy ? `Exporting… ${bytes(arrived ?? 0)}` : 'Export everything'}
      </Button>
      <ErrorNotice error={save.error} />
    </>
  );
}
