import { Code } from '../../ui/code.tsx';
import { ShownOnce } from '../keys/shown-once.tsx';

const verify = `import { Webhook } from 'standardwebhooks';

const event = new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers);`;

const serve = `import { serve } from '@quarry/client/serve';

const handle = serve([myWorkflow], { secret: process.env.WEBHOOK_SECRET });`;

/** A webhook's secret, and how the receiver uses it. */
export function WebhookSecret({
  wakes = false,
  ...props
}: {
  title: string;
  secret: string;
  /** Whether the receiver is a function that executes runs. */
  wakes?: boolean;
  onClose: () => void;
}) {
  return (
    <ShownOnce {...props}>
      <p>
        {wakes
          ? 'The function verifies each message with it. It needs no key:'
          : 'The receiver verifies each request with it, over the raw body:'}
      </p>
      <Code text={wakes ? serve : verify} label={wakes ? 'The function' : 'Verifying a request'} />
    </ShownOnce>
  );
}
