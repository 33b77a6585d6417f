import { Webhook } from 'standardwebhooks';
import { awkwardTexts } from './awkward-values.ts';

/** One POST to an inbound URL. `isForged`: no signature of its secret covers it, so it must be refused. */
type InboundCase = {
  what: string;
  isPlain?: true;
  token: string;
  isForged?: true;
  /** Built when it is sent, so that the signed time is current. */
  build(): { headers: Record<string, string>; body: string };
};

/**
 * Posts to a URL that accepts only signed messages, and to one that accepts all messages. Each header and body is
 * awkward.
 */
export function* inboundCases(open: string, signed: { token: string; secret: string }): Generator<InboundCase> {
  const { token, secret } = signed;
  let number = 0;
  const sign = (body: string, { secret: key = secret, ageMs = 0 } = {}) => {
    number += 1;
    const id = `msg_${number}`;
    const at = new Date(Date.now() - ageMs);
    return {
      'content-type': 'text/plain',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': new Webhook(key).sign(id, at, body),
    };
  };
  yield { what: 'signed', isPlain: true, token, build: () => ({ headers: sign('text'), body: 'text' }) };
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const)
    for (const [index, value] of awkwardTexts.entries())
      yield {
        ...{ what: `signed ${name} = text ${index}`, token, isForged: true },
        build: () => ({ headers: { ...sign('text'), [name]: value }, body: 'text' }),
      };
  for (const [index, body] of awkwardTexts.entries()) {
    const written = body.toWellFormed();
    yield { what: `signed body = text ${index}`, token, build: () => ({ headers: sign(written), body: written }) };
    if (written !== 'text')
      yield {
        ...{ what: `body after signing = text ${index}`, token, isForged: true },
        build: () => ({ headers: sign('text'), body: written }),
      };
  }
  const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  for (const [what, headers] of [
    ['signed by another secret', () => sign('text', { secret: other })],
    ['signed six minutes ago', () => sign('text', { ageMs: 360_000 })],
    ['signed for in six minutes', () => sign('text', { ageMs: -360_000 })],
    ['without a signature', () => ({ 'content-type': 'text/plain' })],
  ] as const)
    yield { what, token, isForged: true, build: () => ({ headers: headers(), body: 'text' }) };
  for (let bit = 0; bit < signatureBits; bit++)
    yield {
      ...{ what: `signature with bit ${bit} changed`, token, isForged: true },
      build: () => {
        const headers = sign('text');
        const [version = '', mac = ''] = headers['webhook-signature'].split(',');
        const bytes = Buffer.from(mac, 'base64');
        bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        return { headers: { ...headers, 'webhook-signature': `${version},${bytes.toString('base64')}` }, body: 'text' };
      },
    };
  for (const name of ['content-type', 'content-encoding', 'x-filename', 'idempotency-key', 'webhook-signature'])
    for (const [index, value] of awkwardTexts.entries())
      yield {
        ...{ what: `unsigned ${name} = text ${index}`, token: open },
        build: () => ({ headers: { 'content-type': 'text/plain', [name]: value }, body: 'text' }),
      };
  for (const [index, body] of awkwardTexts.entries())
    yield {
      ...{ what: `unsigned body = text ${index}`, token: open },
      build: () => ({ headers: { 'content-type': 'text/plain' }, body: body.toWellFormed() }),
    };
}

/** The number of bits in HMAC-SHA256. */
const signatureBits = 256;
