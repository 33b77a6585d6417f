import assert from 'node:assert/strict';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { after, before, test } from 'node:test';
import { chromium as chromiumClient } from 'playwright-core';
import { checkRenderer } from '../../src/cli/operate/doctor-surroundings.ts';
import { readConfig } from '../../src/config/config.ts';
import { Renderer } from '../../src/content/browser/renderer.ts';
import { createFetcher, type Fetcher } from '../../src/content/fetch/guarded-fetch.ts';
import { createLogger } from '../../src/lib/log.ts';
import { type FixtureSite, responses, type SitePages, startSite } from '../support/fixture-site.ts';
import { startChromium, type TestChromium } from '../support/renderer.ts';

/* Pages that want out of the renderer, or want it for themselves. */

let chromium: TestChromium;
let fetcher: Fetcher;
let site: FixtureSite;
let origin: string;
/** A service of the operator's machine: nothing may connect to it. */
let canary: Server;
let canaryPort: number;
let connections = 0;
let datagrams: UdpSocket;
let received = 0;
/** The public address that a name first has, on the port of the canary. */
let decoy: HttpServer;
let timesResolved = 0;
const attackBegun = Promise.withResolvers<void>();
let attacking = false;
/** The pages that arrived while the attacker was open. */
let victims = 0;

before(async () => {
  canary = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve));
  canaryPort = (canary.address() as AddressInfo).port;
  datagrams = createSocket('udp4').on('message', () => {
    received += 1;
  });
  await new Promise<void>((resolve) => datagrams.bind(canaryPort, '127.0.0.1', resolve));
  decoy = createHttpServer((_request, response) =>
    response.writeHead(200, { 'access-control-allow-origin': '*', connection: 'close' }).end('decoy'),
  );
  await new Promise<void>((resolve) => decoy.listen(canaryPort, '127.0.0.2', resolve));
  site = await startSite(pages());
  const { port } = new URL(site.origin);
  // A secure context, where service workers and WebTransport exist.
  origin = `http://site.localhost:${port}`;
  fetcher = createFetcher({
    allow: ['site.localhost', '127.0.0.2'],
    resolve: async (host) => [host === 'rebind.test' && timesResolved++ === 0 ? '127.0.0.2' : '127.0.0.1'],
  });
  chromium = await startChromium();
});
after(async () => {
  await chromium.close();
  await fetcher.close();
  await site.close();
  for (const server of [canary, decoy]) server.close();
  datagrams.close();
});

function rendererWith(options: Partial<ConstructorParameters<typeof Renderer>[0]> = {}): Renderer {
  const log = createLogger('silent');
  const own = { address: chromium.address, proxyHost: '127.0.0.1', dataDir: '', pages: 2, timeoutMs: 20_000 };
  return new Renderer({ ...own, fetcher, log, ...options });
}

function draw(path: string, { lane = 'app', renderer = rendererWith(), signal = new AbortController().signal } = {}) {
  return renderer.render({
    ...{ url: origin + path, lane, signal },
    mayRequest: () => true,
    inTurn: (work) => work(),
  });
}

/** A page whose script replaces its text. */
function scripted(script: string): string {
  return `<!doctype html><html><body><p id="text">Nothing.</p><script type="module">
    const show = (text) => { document.getElementById('text').textContent = text; };
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    ${script}</script></body></html>`;
}

function pages(): SitePages {
  const canaryAt = `127.0.0.1:${canaryPort}`;
  const addresses = [
    canaryAt,
    `localhost:${canaryPort}`,
    `[::ffff:127.0.0.1]:${canaryPort}`,
    `inside.test:${canaryPort}`,
  ];
  return {
    '/inside': scripted(`
      const tries = {};
      const attempt = async (name, work) => { try { tries[name] = await work() ?? 'none'; } catch { tries[name] = 'failed'; } };
      const loaded = (element, url) => new Promise((resolve, reject) => {
        element.onload = () => resolve('loaded'); element.onerror = reject;
        element[element.tagName === 'LINK' ? 'href' : 'src'] = url; document.body.append(element);
      });
      const gather = async ({ RTCPeerConnection }) => {
        const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${canaryAt}' },
          { urls: 'turn:${canaryAt}?transport=tcp', username: 'a', credential: 'b' }] });
        peer.createDataChannel('data'); await peer.setLocalDescription(await peer.createOffer()); await pause(1000);
      };
      for (const address of ${JSON.stringify(addresses)}) {
        await attempt('fetch ' + address, async () => (await fetch('http://' + address + '/')).status);
        await attempt('tls ' + address, async () => (await fetch('https://' + address + '/')).status);
        await attempt('socket ' + address, () => new Promise((resolve, reject) => {
          const socket = new WebSocket('ws://' + address + '/'); socket.onopen = resolve; socket.onerror = reject; }));
        await attempt('image ' + address, () => loaded(new Image(), 'http://' + address + '/a.png'));
        await attempt('script ' + address, () => loaded(document.createElement('script'), 'http://' + address + '/a.js'));
      }
      await attempt('redirect', async () => (await fetch('/to-canary')).status);
      await attempt('worker', () => new Promise((resolve, reject) => {
        const code = 'fetch("http://${canaryAt}/").then(() => postMessage("open"), () => postMessage("failed"))';
        const worker = new Worker(URL.createObjectURL(new Blob([code])));
        worker.onmessage = ({ data }) => data === 'open' ? resolve(data) : reject(data); }));
      const frame = document.createElement('iframe'); document.body.append(frame);
      const preconnect = Object.assign(document.createElement('link'), { rel: 'preconnect', href: 'http://${canaryAt}/' });
      document.head.append(preconnect);
      navigator.sendBeacon('http://${canaryAt}/beacon');
      await attempt('rtc', () => gather(window));
      await attempt('rtc of a frame', () => gather(frame.contentWindow));
      await attempt('transport', async () => new WebTransport('https://${canaryAt}/').ready);
      await attempt('transport of a frame', async () => new frame.contentWindow.WebTransport('https://${canaryAt}/').ready);
      await attempt('service worker', async () => {
        if ((await navigator.serviceWorker.register('/worker.js')) === undefined) throw new Error('not registered'); });
      await attempt('file', async () => (await fetch('file:///etc/passwd')).status);
      await attempt('rebinding, first', async () => (await fetch('http://rebind.test:${canaryPort}/')).text());
      await attempt('rebinding, then', async () => (await fetch('http://rebind.test:${canaryPort}/')).text());
      location.href = 'file:///etc/passwd';
      show(JSON.stringify(tries));`),
    '/to-canary': responses.redirect(`http://${canaryAt}/`),
    '/away': responses.redirect(`http://${canaryAt}/`),
    '/worker.js': 'self.addEventListener("fetch", () => {});',
    '/storage': scripted(`
      const before = [document.cookie, localStorage.seen, sessionStorage.seen, window.name,
        (await caches.keys()).length, (await indexedDB.databases()).length].join('|');
      document.cookie = 'seen=1; max-age=1000'; localStorage.seen = 1; sessionStorage.seen = 1; window.name = 'seen';
      await caches.open('seen'); indexedDB.open('seen'); show('before:' + before + ':');`),
    '/attack': scripted(`
      const name = 'meeting', say = 'from the attacker';
      localStorage[name] = say; sessionStorage[name] = say; document.cookie = name + '=' + encodeURIComponent(say);
      let echo = false; new BroadcastChannel(name).onmessage = () => { echo = true; };
      const channel = new BroadcastChannel(name); setInterval(() => channel.postMessage(say), 20);
      const worker = new SharedWorker('/shared.js', name); worker.port.start();
      setInterval(() => { worker.port.postMessage(say); localStorage[name] = say + Math.random(); }, 20);
      await (await caches.open(name)).put('/fast', new Response(say, { headers: { 'content-type': 'text/html' } }));
      const open = indexedDB.open(name); open.onupgradeneeded = () => open.result.createObjectStore('s').put(say, 1);
      navigator.locks.request(name, () => new Promise(() => {})); window.open('/victim', name);
      while (!echo) await pause(20); show('attacked, heard' + ' by itself'); await fetch('/met');`),
    '/victim': scripted(`
      const name = 'meeting', heard = [];
      const hear = (where) => ({ data }) => heard.push(where + ' ' + data);
      new BroadcastChannel(name).onmessage = hear('channel'); addEventListener('storage', hear('storage'));
      addEventListener('message', hear('message'));
      const worker = new SharedWorker('/shared.js', name); worker.port.onmessage = hear('worker'); worker.port.start();
      await fetch('/arrived'); await pause(500);
      const locked = await navigator.locks.request(name, { ifAvailable: true }, (lock) => lock === null);
      const fast = await (await fetch('/fast')).text();
      show('heard:' + JSON.stringify([heard, locked, localStorage[name], sessionStorage[name], document.cookie,
        (await caches.keys()).length, (await indexedDB.databases()).length, opener, fast.includes('attacker')]) + ':');`),
    '/shared.js': `const ports = []; onconnect = ({ ports: [port] }) => { ports.push(port);
      port.onmessage = ({ data }) => { for (const each of ports) each.postMessage(data); }; };`,
    '/arrived': (_request, response) => {
      victims += attacking ? 1 : 0;
      response.end('x');
    },
    // The attacker stays until its victims have arrived.
    '/met': (_request, response) => {
      attacking = true;
      attackBegun.resolve();
      response.on('close', () => {
        attacking = false;
      });
    },
    '/loop': scripted('for (;;) {}'),
    '/alert': scripted('for (;;) alert("stay");'),
    '/unload': scripted(
      'window.onbeforeunload = () => "stay"; show("words that stay"); location.href = "/unload?next";',
    ),
    '/again': scripted('location.href = "/again?" + Math.random();'),
    '/reload': '<html><head><meta http-equiv="refresh" content="0"></head><body>again</body></html>',
    '/popups': scripted('for (let at = 0; at < 3; at++) window.open("/popup?" + at); show("windows were opened");'),
    '/popup': 'a window',
    '/download': scripted(`location.href = '/file'; await pause(200); show('a file was offered');`),
    '/file': (_request, response) =>
      response.writeHead(200, { 'content-type': 'application/zip', 'content-disposition': 'attachment' }).end('PK'),
    '/elements': scripted(`document.body.innerHTML += '<i></i>'.repeat(2_000);`),
    '/long': scripted(`show('word '.repeat(30_000));`),
    '/requests': scripted(`await Promise.allSettled(Array.from({ length: 40 }, (_, at) => fetch('/small?' + at)));
      show('all were asked for');`),
    '/small': 'x',
    '/bytes': scripted(
      `await fetch('/endless').then((answer) => answer.text()).catch(() => {}); show('enough was read');`,
    ),
    '/endless': responses.endless,
    '/hang': scripted(`await fetch('/silent');`),
    '/silent': responses.silent,
    '/fast': scripted('show("drawn quickly");'),
    '/shadow': scripted(`
      customElements.define('x-card', class extends HTMLElement { constructor() { super();
        this.attachShadow({ mode: 'open' }).innerHTML = '<h2>In the shadow</h2><slot></slot><slot name="end">No end.</slot>'; } });
      document.body.insertAdjacentHTML('beforeend', '<x-card><p>In the light</p></x-card><x-card><b slot="end">The end</b></x-card>');
      show('Before.');`),
    '/frames': `<body><p>Before.</p><iframe src="/inner"></iframe><p>Between.</p>
      <iframe src="http://127.0.0.2:${canaryPort}/"></iframe>
      <p>After.</p></body>`,
    '/inner': '<body><p>In a frame.</p><iframe srcdoc="<p>In a frame of it.</p>"></iframe></body>',
    '/nested': '<body><p>Level 0.</p><iframe src="/nested1"></iframe></body>',
    '/nested1': '<body><p>Level 1.</p><iframe src="/nested2"></iframe></body>',
    '/nested2': '<body><p>Level 2.</p><iframe src="/nested3"></iframe></body>',
    '/nested3': '<body><p>Level 3.</p></body>',
    '/many': `<body><p>Many.</p>${'<iframe src="/small"></iframe>'.repeat(8)}</body>`,
    '/outside': `<body><p>Alone.</p><iframe src="http://${canaryAt}/"></iframe></body>`,
  };
}

test('a page reaches no address that is not public, whichever way it tries', async () => {
  const { html } = await draw('/inside');
  const tries = JSON.parse(/<p id="text">(\{.*?\})<\/p>/s.exec(html)?.[1] ?? '{}') as Record<string, string>;
  const { 'rebinding, first': first, ...others } = tries;
  assert.equal(first, 'decoy', html);
  assert.equal(Object.keys(others).length, 29);
  assert.deepEqual(
    Object.entries(others).filter(([, result]) => result !== 'failed'),
    [],
  );
  await assert.rejects(draw('/away'), /could not load/);
  assert.deepEqual({ connections, received }, { connections: 0, received: 0 });

  connect(canaryPort, '127.0.0.1').resume();
  while (connections === 0) await new Promise((resolve) => canary.once('connection', resolve));
});

test('nothing of a page reaches the next one, of the same app or another', async () => {
  for (const lane of ['app', 'app', 'other']) {
    const { html } = await draw('/storage', { lane });
    assert.match(html, /before:\|\|\|\|0\|0:/);
  }
});

test('a page of one app that is rendered at the same time reaches no page of another app on the same site', async () => {
  const renderer = rendererWith({ pages: 4 });
  const attack = draw('/attack', { lane: 'attacker', renderer });
  await Promise.race([attackBegun.promise, attack]);
  const pages = await Promise.all(['victim', 'other'].map((lane) => draw('/victim', { lane, renderer })));
  assert.match((await attack).html, /attacked, heard by itself/);
  assert.ok(victims > 0, 'a page arrived while the attacker was open');
  for (const { html } of pages) assert.match(html, /heard:\[\[\],false,null,null,"",0,0,null,false\]:/, html);
});

test('a page that never rests ends with its time', async () => {
  const renderer = rendererWith({ timeoutMs: 3_000 });
  await Promise.all(['/loop', '/alert'].map((path) => assert.rejects(draw(path, { renderer }), /took too long/)));
  const free = rendererWith();
  assert.match((await draw('/fast', { renderer: free })).html, /drawn quickly/);
});

test('a page that navigates without end is read where it stops', async () => {
  // Time enough to reach the bound on any machine.
  const renderer = rendererWith({ timeoutMs: 300_000, bounds: { navigationsMax: 3 } });
  const [, , left] = await Promise.all([
    ...['/again', '/reload'].map(async (path) => {
      const { html, truncated } = await draw(path, { renderer, lane: path });
      assert.equal(truncated.length, 1, path);
      assert.ok(site.requests.filter((asked) => asked.startsWith(path)).length <= 3, path);
      return html;
    }),
    draw('/unload', { renderer: rendererWith() }).then(({ html }) => html),
  ]);
  assert.match(left ?? '', /words that stay/);
});

test('windows, downloads and dialogs of a page come to nothing', async () => {
  const renderer = rendererWith();
  assert.match((await draw('/popups', { renderer })).html, /windows were opened/);
  assert.equal(site.requests.filter((path) => path.startsWith('/popup?')).length, 0);
  assert.match((await draw('/download', { renderer })).html, /a file was offered/);
});

test('a page has bounds of elements, characters, requests and bytes', async () => {
  const bounds = { elementsMax: 1_000, charactersMax: 50_000, requestsMax: 30, bytesMax: 1024 * 1024 };
  const renderer = rendererWith({ bounds });
  await assert.rejects(draw('/elements', { renderer }), /more than 1000 elements/);
  const long = await draw('/long', { renderer });
  assert.deepEqual(long.truncated, ['everything after the first 50000 characters']);
  assert.equal(long.html.length, 50_000);
  const many = await draw('/requests', { renderer });
  assert.match(many.html, /all were asked for/);
  assert.equal(many.truncated.length, 1);
  assert.ok(site.requests.filter((path) => path.startsWith('/small')).length < 30);
  const heavy = await draw('/bytes', { renderer });
  assert.match(heavy.html, /enough was read/);
  assert.equal(heavy.truncated.length, 1);
});

/** The words of a page in order. */
function wordsOf(html: string): string {
  const text = html.replace(/<script[\s\S]*?<\/script>/g, ' ').replace(/<[^>]*>/g, ' ');
  return text.replace(/\s+/g, ' ').trim();
}

test('open shadow roots are read in their places, with what their slots show', async () => {
  const { html } = await draw('/shadow');
  assert.equal(wordsOf(html), 'Before. In the shadow In the light No end. In the shadow The end');
});

test('frames of the same and of other sites are read in their places', async () => {
  const { html, truncated } = await draw('/frames');
  assert.equal(wordsOf(html), 'Before. In a frame. In a frame of it. Between. decoy After.');
  assert.deepEqual(truncated, []);
});

test('frames have bounds of number and depth, and reach no address that is not public', async () => {
  const renderer = rendererWith({ bounds: { framesMax: 4, frameDepthMax: 2 } });
  const nested = await draw('/nested', { renderer });
  assert.equal(wordsOf(nested.html), 'Level 0. Level 1. Level 2.');
  assert.equal(nested.truncated.length, 1);
  const many = await draw('/many', { renderer });
  assert.equal(wordsOf(many.html), 'Many. x x x x');
  assert.equal(many.truncated.length, 1);
  connections = 0;
  assert.equal(wordsOf((await draw('/outside')).html), 'Alone.');
  assert.equal(connections, 0);
});

test('an app has its share of the pages, and delays no other', async () => {
  const renderer = rendererWith();
  const stop = new AbortController();
  const before = site.requestCount('/silent');
  const mine = Array.from({ length: 6 }, () =>
    renderer.render({
      ...{ url: `${origin}/hang`, lane: 'busy', signal: stop.signal },
      mayRequest: () => true,
      inTurn: (work) => work(),
    }),
  );
  const ended = Promise.allSettled(mine);
  assert.match((await draw('/fast', { lane: 'other', renderer })).html, /drawn quickly/);
  assert.ok(site.requestCount('/silent') - before <= 2);
  stop.abort(new Error('enough'));
  for (const result of await ended) assert.match(String(result.status === 'rejected' && result.reason), /enough/);
});

test('two processes use one Chromium without disturbing each other', async () => {
  const [one, two] = [rendererWith(), rendererWith()];
  const drawn = await Promise.all([
    ...[draw('/fast', { renderer: one }), draw('/fast', { renderer: two })],
    ...[draw('/fast', { renderer: two }), draw('/fast', { renderer: one })],
  ]);
  for (const { html } of drawn) assert.match(html, /drawn quickly/);
});

test('the end of a connection to Chromium leaves the next one alone, and nothing stays open', async () => {
  const openServers = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;
  const renderer = rendererWith();
  const before = openServers();
  const held = assert.rejects(draw('/hang?held', { renderer }), { isTransient: true });
  await site.waitForRequest('/hang?held');
  const closing = renderer.close();
  assert.match((await draw('/fast', { renderer })).html, /drawn quickly/);
  await Promise.all([held, closing]);
  assert.equal(openServers(), before);
});

/** Has a page without our scripts look for its own address, at the canary. */
async function sendDatagrams(address: string): Promise<number> {
  const before = received;
  const browser = await chromiumClient.connectOverCDP(address);
  const page = await (await browser.newContext()).newPage();
  await page.evaluate(`new Promise((resolve) => {
    const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${canaryPort}' }] });
    peer.createDataChannel('data');
    peer.createOffer().then((offer) => peer.setLocalDescription(offer));
    setTimeout(resolve, 1_000);
  })`);
  await browser.close();
  return received - before;
}

test('a page that does not close in time ends no other page, and nothing stays open', async () => {
  const openServers = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;
  const before = openServers();
  const renderer = rendererWith({ closeTimeoutMs: 0 });
  const stop = new AbortController();
  const held = draw('/hang?beside', { lane: 'other', renderer, signal: stop.signal });
  const ended = Promise.allSettled([held]);
  await site.waitForRequest('/hang?beside');
  for (let n = 0; n < 2; n++) assert.match((await draw('/fast', { renderer })).html, /drawn quickly/);
  stop.abort(new Error('enough'));
  await ended;
  await assert.rejects(held, /enough/);
  assert.equal(openServers(), before);
});

test('a Chromium that lets datagrams past the proxy is not used', async () => {
  assert.equal(await sendDatagrams(chromium.address), 0);
  const open = await startChromium([]);
  try {
    assert.notEqual(await sendDatagrams(open.address), 0, 'the flag makes no difference to this Chromium');
    const renderer = rendererWith({ address: open.address });
    await assert.rejects(draw('/fast', { renderer }), /not started with --webrtc-ip-handling-policy/);
  } finally {
    await open.close();
  }
});

test('a renderer that is gone is a passing failure', async () => {
  const renderer = rendererWith({ address: 'http://127.0.0.1:1' });
  await assert.rejects(draw('/fast', { renderer }), { isTransient: true });
});

test('quarry doctor names the version of a Chromium that can be used', async () => {
  const config = readConfig({ QUARRY_SECRET: '0f1e2d3c4b5a69788796a5b4c3d2e1f0', QUARRY_RENDERER: chromium.address });
  const { level, message } = await checkRenderer(config);
  assert.equal(level, 'ok', message);
  assert.match(message, /^Chromium \d+\./);
});
