import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, type JWK, type JWTPayload, SignJWT } from 'jose';

/** An issuer of tokens of which a test can change every part. */
type TestIssuer = {
  /** Its name in tokens and in its discovery document. A different one if a proxy is in front of it. */
  issuer: string;
  /** The number of requests for keys so far. */
  keyRequests(): number;
  /** Signs with the current key. `header` and `payload` override the usual values. */
  sign(subject: string, payload?: JWTPayload, header?: Record<string, unknown>): Promise<string>;
  /** Publishes a new key and drops the old one. */
  rotate(): Promise<void>;
  /** Publishes these keys instead. */
  publish(keys: JWK[]): void;
  publicKey(): Promise<JWK>;
  /** From now on, every request fails, or none does. */
  fail(isDown: boolean): void;
  close(): Promise<void>;
};

export async function startIssuer(now: () => Date, audience: string): Promise<TestIssuer> {
  let keyId = 0;
  let pair = newPair();
  let isDown = false;
  let requests = 0;
  const publicKey = async () => ({
    ...(await exportJWK(pair.publicKey)),
    kid: `key-${keyId}`,
    alg: 'RS256',
    use: 'sig',
  });
  let keys: JWK[] = [await publicKey()];
  const server: Server = createServer((request, response) => {
    const { issuer } = self;
    const body = request.url?.endsWith('/openid-configuration') ? { issuer, jwks_uri: `${issuer}/jwks` } : { keys };
    if (request.url === '/jwks') requests += 1;
    response.writeHead(isDown ? 500 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: TestIssuer = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keyRequests: () => requests,
    sign(subject, payload = {}, header = {}) {
      const seconds = Math.floor(now().getTime() / 1_000);
      return new SignJWT({
        iss: self.issuer,
        aud: audience,
        sub: subject,
        iat: seconds,
        exp: seconds + 600,
        ...payload,
      })
        .setProtectedHeader({ alg: 'RS256', kid: `key-${keyId}`, ...header })
        .sign(pair.privateKey);
    },
    async rotate() {
      keyId += 1;
      pair = newPair();
      keys = [await publicKey()];
    },
    publish(given) {
      keys = given;
    },
    publicKey,
    fail(down) {
      isDown = down;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return self;
}

function newPair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('rsa', { modulusLength: 2_048 });
}
