import type { ServerResponse } from 'node:http';
import type { Mutator } from './mutate.ts';

/** Something that a page may do to its renderer, or a way in which it may try to escape. */

type Trap = { name: string; html: string };

/** A page of traps, perhaps damaged, and how its server sends it. */
export type HostilePage = { name: string; html: Buffer; respond: (response: ServerResponse, html: Buffer) => void };

/** @param canary `host:port` of a service that nothing may reach. */
function traps(canary: string): Trap[] {
  const inside = `http://${canary}/`;
  const script = (name: string, code: string): Trap => ({ name, html: `<script>${code}</script>` });
  const element = (name: string, html: string): Trap => ({ name, html });
  return [
    script('endless loop', 'for (;;);'),
    script('endless loop later', 'setTimeout(() => { for (;;); }, 50);'),
    script('endless loop on load', 'onload = () => { for (;;); };'),
    script('endless microtasks', '(function more() { Promise.resolve().then(more); })();'),
    script('endless frames', '(function more() { requestAnimationFrame(more); document.body?.append("x"); })();'),
    script('many timers', 'for (let i = 0; i < 5000; i++) setInterval(() => { document.title = Math.random(); }, 1);'),
    script('endless recursion', '(function more() { more(); more(); })();'),
    script('slow pattern', '/^(a+)+$/.test("a".repeat(40) + "!");'),
    script('debugger', 'for (let i = 0; i < 1000; i++) debugger;'),
    script(
      'observer that feeds itself',
      'new MutationObserver(() => document.body.append("x")).observe(document, { childList: true, subtree: true }); document.documentElement.append("x");',
    ),
    script('huge text', 'document.documentElement.append("word ".repeat(3_000_000));'),
    script('huge attribute', 'document.documentElement.setAttribute("data-x", "y".repeat(8_000_000));'),
    script('many elements', 'onload = () => { document.body.innerHTML = "<i></i>".repeat(60_000); };'),
    script(
      'deep elements',
      'let at = document.documentElement; for (let i = 0; i < 20_000; i++) at = at.appendChild(document.createElement("div"));',
    ),
    script(
      'deep shadow roots',
      'onload = () => { let at = document.body; for (let i = 0; i < 800; i++) { const host = document.createElement("div"); at.append(host); at = host.attachShadow({ mode: "open" }); } };',
    ),
    script(
      'broken built-ins',
      'Array.prototype.map = Array.prototype[Symbol.iterator] = JSON.stringify = Object.keys = Node.prototype.append = () => { throw 1; }; Object.defineProperty(Element.prototype, "outerHTML", { get() { for (;;); } }); Object.defineProperty(document, "getElementsByTagName", { value: () => ({ length: -1 }) });',
    ),
    script('no document', 'onload = () => { document.documentElement.remove(); };'),
    script('another document', 'onload = () => { document.open(); document.write("<p>other"); };'),
    script('written forever', 'onload = () => { for (let i = 0; i < 20_000; i++) document.write("<p>more"); };'),
    script('leaves', 'location.href = "/next?" + Math.random();'),
    script('leaves again and again', 'setInterval(() => { location.href = "/next?" + Math.random(); }, 20);'),
    script('replaces itself', 'location.replace(location.href + "?" + Math.random());'),
    script('reloads', 'location.reload();'),
    script('history', 'for (let i = 0; i < 500; i++) history.pushState({}, "", "/state" + i); history.back();'),
    script('closes itself', 'window.close(); self.close(); window.stop();'),
    script('dialogs', 'for (let i = 0; i < 50; i++) { alert(i); confirm(i); prompt(i); }'),
    script('stays', 'onbeforeunload = (event) => { event.preventDefault(); return "stay"; }; location.href = "/next";'),
    script('prints', 'for (let i = 0; i < 20; i++) print();'),
    script('windows', 'for (let i = 0; i < 20; i++) open("/next?" + i);'),
    script('windows inside', `for (let i = 0; i < 5; i++) open("${inside}" + i);`),
    script(
      'windows of blobs',
      'for (let i = 0; i < 5; i++) open(URL.createObjectURL(new Blob(["<script>for(;;);<" + "/script>"], { type: "text/html" })));',
    ),
    script(
      'downloads',
      'for (let i = 0; i < 20; i++) { const a = document.createElement("a"); a.href = "/file?" + i; a.download = "../../etc/x" + i; document.documentElement.append(a); a.click(); }',
    ),
    script(
      'download of a blob',
      'const a = document.createElement("a"); a.href = URL.createObjectURL(new Blob(["x".repeat(1e6)])); a.download = "x"; document.documentElement.append(a); a.click();',
    ),
    script(
      'form',
      `const form = document.createElement("form"); form.action = "${inside}"; form.method = "post"; document.documentElement.append(form); form.submit();`,
    ),
    script(
      'form to a new window',
      `const form = document.createElement("form"); form.action = "${inside}"; form.target = "_blank"; document.documentElement.append(form); form.submit();`,
    ),
    script(
      'fetch',
      `fetch("${inside}").catch(() => {}); fetch("${inside}", { mode: "no-cors", keepalive: true, method: "POST", body: "x" }).catch(() => {});`,
    ),
    script(
      'fetch on leaving',
      `onpagehide = onunload = () => { navigator.sendBeacon("${inside}", "x"); fetch("${inside}", { keepalive: true, mode: "no-cors" }); };`,
    ),
    script('beacon', `navigator.sendBeacon("${inside}", "x");`),
    script('request', `const x = new XMLHttpRequest(); x.open("GET", "${inside}", false); try { x.send(); } catch {}`),
    script(
      'sockets',
      `for (const kind of ["ws", "wss"]) new WebSocket(kind + "://${canary}/"); new EventSource("${inside}");`,
    ),
    script(
      'peers',
      `for (const scheme of ["stun", "turn"]) try { const peer = new RTCPeerConnection({ iceServers: [{ urls: scheme + ":${canary}", username: "a", credential: "b" }] }); peer.createDataChannel("x"); peer.createOffer().then((offer) => peer.setLocalDescription(offer)); } catch {}`,
    ),
    script('transport', `try { new WebTransport("https://${canary}/"); } catch {}`),
    script('service worker', 'navigator.serviceWorker?.register("/worker.js").catch(() => {});'),
    script(
      'workers',
      `const code = URL.createObjectURL(new Blob(["fetch('${inside}').catch(() => {}); new WebSocket('ws://${canary}/'); for (;;);"])); for (let i = 0; i < 3; i++) new Worker(code);`,
    ),
    script('shared worker', `new SharedWorker(URL.createObjectURL(new Blob(["importScripts('${inside}')"])));`),
    script(
      'worklet',
      'CSS.paintWorklet?.addModule("/worker.js").catch(() => {}); new AudioContext().audioWorklet?.addModule("/worker.js").catch(() => {});',
    ),
    script(
      'machine code that does not end',
      'new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,8,1,0,10,9,1,7,0,3,64,12,0,11,11])));',
    ),
    script(
      'permissions',
      'navigator.geolocation?.getCurrentPosition(() => {}); Notification.requestPermission?.(); navigator.mediaDevices?.getUserMedia({ audio: true, video: true }).catch(() => {}); navigator.clipboard?.readText().catch(() => {}); navigator.usb?.requestDevice({ filters: [] }).catch(() => {}); document.documentElement.requestFullscreen?.().catch(() => {}); navigator.registerProtocolHandler?.("web+x", "/?x=%s"); showOpenFilePicker?.().catch(() => {});',
    ),
    script(
      'storage',
      'try { for (let i = 0; i < 100; i++) localStorage["k" + i] = "x".repeat(50_000); } catch {} caches?.open("x").catch(() => {}); indexedDB.open("x");',
    ),
    script('file', 'location.href = "file:///etc/passwd";'),
    script(
      'own pages of the browser',
      'for (const to of ["chrome://crash", "chrome://settings", "about:blank", "view-source:/", "devtools://devtools/bundled/inspector.html", "javascript:for(;;);", "data:text/html,<script>for(;;);<" + "/script>"]) try { location.href = to; } catch {}',
    ),
    script('names and messages', 'name = "x".repeat(1e6); setInterval(() => postMessage("x".repeat(1e5), "*"), 1);'),
    script(
      'console',
      'for (let i = 0; i < 3000; i++) console.log("x".repeat(1000), { i }); throw new Error("x".repeat(1e5));',
    ),
    script('rejections', 'for (let i = 0; i < 2000; i++) Promise.reject(new Error("x" + i));'),
    script('many requests', 'for (let i = 0; i < 1000; i++) fetch("/small?" + i).catch(() => {});'),
    script('endless body', 'fetch("/endless").then((response) => response.text()).catch(() => {});'),
    script('silent request', 'fetch("/silent").catch(() => {});'),
    script('upload', 'fetch("/small", { method: "POST", body: "x".repeat(5e6) }).catch(() => {});'),
    element('frame that never loads', '<iframe src="/silent"></iframe><iframe src="/endless"></iframe>'),
    element('frame of itself', '<iframe src="?again"></iframe>'),
    element('many frames', '<iframe src="/small"></iframe>'.repeat(200)),
    element(
      'frames that load frames',
      '<iframe srcdoc="<iframe srcdoc=&quot;<iframe src=/next></iframe>&quot;></iframe>"></iframe>',
    ),
    element(
      'frames of other schemes',
      '<iframe src="file:///etc/passwd"></iframe><iframe src="data:text/html,<script>for(;;);</script>"></iframe><iframe src="blob:null/x"></iframe><iframe src="chrome://gpu"></iframe><object data="file:///etc/hosts"></object>',
    ),
    element('frame that loops', '<iframe srcdoc="<script>for (;;);</script>"></iframe>'),
    element(
      'frame inside',
      `<iframe src="${inside}"></iframe><object data="${inside}"></object><embed src="${inside}">`,
    ),
    element(
      'resources inside',
      `<img src="${inside}a"><link rel="stylesheet" href="${inside}b"><script src="${inside}c"></script><video src="${inside}d"></video><style>@import "${inside}e"; body { background: url(${inside}f) } @font-face { font-family: x; src: url(${inside}g) }</style><svg><image href="${inside}h"/><use href="${inside}i#x"/></svg>`,
    ),
    element(
      'hints',
      ['prefetch', 'preconnect', 'dns-prefetch', 'prerender', 'preload', 'modulepreload', 'manifest', 'icon']
        .map((rel) => `<link rel="${rel}" as="script" href="${inside}">`)
        .join(''),
    ),
    element(
      'speculation',
      `<script type="speculationrules">{"prerender":[{"source":"list","urls":["${inside}","/next"]}],"prefetch":[{"source":"list","urls":["${inside}"]}]}</script>`,
    ),
    element('ping', `<a id="a" href="#" ping="${inside}">x</a><script>document.getElementById("a").click()</script>`),
    element('refresh', '<meta http-equiv="refresh" content="0;url=/next">'),
    element('refresh inside', `<meta http-equiv="refresh" content="0;url=${inside}">`),
    element(
      'reports inside',
      `<meta http-equiv="content-security-policy" content="script-src 'none'; report-uri ${inside}">`,
    ),
    element('base inside', `<base href="${inside}"><script src="x.js"></script>`),
    element(
      'import map',
      `<script type="importmap">{"imports":{"x":"${inside}x.js"}}</script><script type="module">import "x";</script>`,
    ),
    element('unclosed', '<table><tr><td><select><option><math><mtext><svg><foreignObject><template><p'),
    element('deep markup', '<b><div>'.repeat(3_000)),
    element('many attributes', `<p ${Array.from({ length: 5_000 }, (_, i) => `a${i}=${i}`).join(' ')}>`),
    element(
      'style that takes long',
      `<style>${':has(*) :is(*, * *) ~ * '.repeat(200)} { color: red }</style>${'<p>'.repeat(2_000)}`,
    ),
    element(
      'drawing that takes long',
      `<svg><defs>${Array.from({ length: 12 }, (_, i) => `<g id="g${i + 1}">${`<use href="#g${i}"/>`.repeat(8)}</g>`).join('')}<g id="g0"><rect/></g></defs><use href="#g12"/></svg>`,
    ),
    element('letters', '\u202e\ufeff\ud800\0\u0001\u2028'.repeat(500)),
  ];
}

type Way = { name: string; respond: HostilePage['respond'] };

function ways(canary: string): Way[] {
  const plain = (headers: Record<string, string | string[]> = {}, status = 200): HostilePage['respond'] => {
    return (response, html) => response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(html);
  };
  const inside = `http://${canary}/`;
  return [
    { name: 'plain', respond: plain() },
    { name: 'plain', respond: plain() },
    { name: 'plain', respond: plain() },
    { name: 'alternatives', respond: plain({ 'alt-svc': `h3="${canary}"; ma=60, h2="${canary}"` }) },
    {
      name: 'linked headers',
      respond: plain({ link: [`<${inside}>; rel=preconnect`, `<${inside}x>; rel=preload; as=script`] }),
    },
    { name: 'refresh header', respond: plain({ refresh: `0;url=${inside}` }) },
    {
      name: 'reporting',
      respond: plain({
        'reporting-endpoints': `default="${inside}"`,
        'report-to': `{"group":"x","max_age":60,"endpoints":[{"url":"${inside}"}]}`,
        nel: '{"report_to":"x","max_age":60,"success_fraction":1}',
        'content-security-policy': `default-src 'self' 'unsafe-inline'; report-uri ${inside}`,
      }),
    },
    {
      name: 'no policy at all',
      respond: plain({
        'access-control-allow-origin': '*',
        'service-worker-allowed': '/',
        'content-security-policy': '',
        'origin-agent-cluster': '?0',
      }),
    },
    { name: 'asks for a password', respond: plain({ 'www-authenticate': 'Basic realm="x"' }, 401) },
    { name: 'poses as the proxy', respond: plain({ 'proxy-authenticate': 'Basic realm="Quarry"' }, 407) },
    { name: 'attachment', respond: plain({ 'content-disposition': 'attachment; filename="../x.html"' }) },
    { name: 'of another type', respond: plain({ 'content-type': 'application/xhtml+xml' }) },
    { name: 'as an image', respond: plain({ 'content-type': 'image/svg+xml' }) },
    { name: 'as a PDF', respond: plain({ 'content-type': 'application/pdf' }) },
    { name: 'as a mail', respond: plain({ 'content-type': 'multipart/related; boundary=x' }) },
    {
      name: 'in parts that replace each other',
      respond: plain({ 'content-type': 'multipart/x-mixed-replace; boundary=x' }),
    },
    { name: 'in a strange alphabet', respond: plain({ 'content-type': 'text/html; charset=utf-7' }) },
    { name: 'redirected inside', respond: (response) => response.writeHead(302, { location: inside }).end() },
    {
      name: 'redirected to a file',
      respond: (response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
    },
    {
      name: 'redirected forever',
      respond: (response) => response.writeHead(302, { location: `/next?${Math.random()}` }).end(),
    },
    { name: 'no content', respond: (response) => response.writeHead(204).end() },
    {
      name: 'cut',
      respond: (response, html) =>
        void response
          .writeHead(200, { 'content-type': 'text/html', 'content-length': html.length + 1_000 })
          .write(html, () => response.destroy()),
    },
    {
      name: 'never ended',
      respond: (response, html) => void response.writeHead(200, { 'content-type': 'text/html' }).write(html),
    },
    { name: 'wrongly compressed', respond: plain({ 'content-encoding': 'gzip' }) },
    { name: 'no HTTP', respond: (response, html) => void response.socket?.end(html) },
  ];
}

/** Pages in an endless order that the seed decides. Each trap comes up once before any comes up again. */
export function* hostilePages(mutator: Mutator, canary: string): Generator<HostilePage> {
  const all = traps(canary);
  const sendings = ways(canary);
  for (let waiting: Trap[] = []; ; ) {
    if (waiting.length === 0) waiting = [...all];
    const [first] = waiting.splice(mutator.next(waiting.length), 1);
    const chosen = [first, ...Array.from({ length: mutator.next(3) }, () => all[mutator.next(all.length)])];
    const way = sendings[mutator.next(sendings.length)];
    if (way === undefined) return;
    const body = chosen.map((trap) => trap?.html ?? '').join('\n');
    const html = Buffer.from(
      `<!doctype html><html><body><p>A page of traps.</p>\n${body}\n<p>The end.</p></body></html>`,
    );
    const damaged = mutator.next(3) === 0 ? mutator.mutate(html, html) : { kind: 'whole', bytes: html };
    const name = `${chosen.map((trap) => trap?.name).join(' + ')} (${damaged.kind}, ${way.name})`;
    yield { name, html: Buffer.from(damaged.bytes), respond: way.respond };
  }
}
