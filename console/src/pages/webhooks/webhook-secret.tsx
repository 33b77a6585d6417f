import { Code } from '../../ui/code.tsx';
import { ShownOnce } from '../keys/shown-once.tsx';

const verify = `import { Webhook } from 'standardwebhooks';

const event = new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers);`;

/** A webhook's secret, and how the receiver uses it. */
export function WebhookSecret(props: { title: string; secret: string; onClose: () => void }) {
  return (
    <ShownOnce {...props}>
      <p>The receiver verifies each request with it, over the raw body:</p>
      <Code text={verify} label="Verifying a request" />
    </ShownOnce>
  );
}
