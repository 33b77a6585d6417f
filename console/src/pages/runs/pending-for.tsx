import type { AutomationRun } from '../../api/generated.ts';
import { count } from '../../ui/format.ts';
import { Time } from '../../ui/time.tsx';

type Pending = NonNullable<AutomationRun['pending_for']>;

/** Why a run has not started, as the end of a sentence about it. */
export function PendingFor({ pending: { limit, until, ahead } }: { pending: Pending }) {
  const others = ahead === 0 ? 'It is the next.' : `${count(ahead, 'run')} ${ahead === 1 ? 'is' : 'are'} ahead of it.`;
  if (limit === 'rate')
    return (
      <>
        waits for the rate of its automation: it starts <Time at={until} />, at the earliest. {others}
      </>
    );
  return (
    <>
      waits until{' '}
      {limit === 'concurrency' ? 'a run with the same value in its payload ends' : 'another run of its automation ends'}
      . {others}
    </>
  );
}
