import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isGloballyRoutable } from '../../src/content/fetch/address.ts';
import { parseAllowList } from '../../src/content/fetch/allow-list.ts';
import { checkUrl } from '../../src/content/fetch/check-url.ts';

test('only globally routable addresses may be connected to', () => {
  const open = ['1.1.1.1', '93.184.215.14', '172.15.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001::200e'];
  for (const address of open) assert.equal(isGloballyRoutable(address), true, address);
  const closed = [
    ...['0.0.0.0', '0.1.2.3', '10.1.2.3', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.254'],
    ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.8', '192.0.2.1', '192.88.99.1', '192.168.1.1'],
    ...['198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255'],
    ...['168.63.129.16', '::', '::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::127.0.0.1', '::ffff:0:127.0.0.1'],
    ...['64:ff9b::7f00:1', '64:ff9b::1.1.1.1', '64:ff9b:1::a00:1', '100::1', '2001::1', '2001:2::1', '2001:10::1'],
    ...[
      '2001:20::1',
      '2001:db8::1',
      '2002:7f00:1::',
      '2002:a00:1::1',
      '3fff::1',
      '3ffe::1',
      'fc00::1',
      'fd00:ec2::254',
    ],
    ...['fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1', '5f00::1', '4000::1', 'nonsense', '', '1.1.1', '01.1.1.1.1'],
  ];
  for (const address of closed) assert.equal(isGloballyRoutable(address), false, address);
});

test('an IPv4 address inside IPv6 counts as the IPv4 address it is', () => {
  assert.equal(isGloballyRoutable('::ffff:1.1.1.1'), true);
  assert.equal(isGloballyRoutable('::ffff:7f00:1'), false);
});

test('a URL that shows an unsafe host, scheme or credentials is refused before anything is resolved', () => {
  const refused = [
    ...['http://127.0.0.1/', 'http://127.1/', 'http://2130706433/', 'http://0x7f000001/', 'http://0177.0.0.1/'],
    ...[
      'http://0x7f.0.0x1/',
      'http://127.0.0.1./',
      'http://127.0.0.1../',
      'http://[::1]/',
      'http://[::ffff:127.0.0.1]/',
    ],
    ...['http://[::ffff:7f00:1]/', 'http://[64:ff9b::7f00:1]/', 'http://[2002:7f00:1::]/', 'http://[fe80::1]/'],
    ...['http://localhost/', 'http://LOCALHOST/', 'http://localhost./', 'http://localhost../', 'http://a.b.localhost/'],
    ...['http://foo.localhost./', 'http://localhost.localdomain/', 'http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/', 'http://locаlhost/'],
    ...[
      'http://ｌｏｃａｌｈｏｓｔ/',
      'http://lоcalhost/',
      'http://locałhost/',
      'http://１２７.０.０.１/',
      'http://①②⑦.⓪.⓪.①/',
    ],
    ...[
      'http://169.254.169.254/latest/meta-data/',
      'http://0/',
      'http://0.0.0.0:8080/',
      'http://10.0.0.1',
      'http:127.0.0.1',
    ],
    ...['http://user:pw@example.com/', 'http://user@example.com/', 'http://:pw@example.com/', 'ftp://example.com/'],
    ...[
      'file:///etc/passwd',
      'gopher://example.com/',
      'javascript:alert(1)',
      'data:text/html,hi',
      'example.com',
      '/x',
      '',
    ],
    ...['http://', 'http://example.com:25/', 'http://example.com:22/', `http://example.com/${'a'.repeat(9_000)}`],
    ...['http://１２７。０。０。１/', 'http://localhost。/', 'http:\\\\127.0.0.1\\x', 'http://exa mple.com/'],
  ];
  for (const url of refused) assert.equal(checkUrl(url).ok, false, url);
  const accepted = [
    'http://example.com',
    'https://example.com:8443/a?b#c',
    'http://1.1.1.1/',
    'http://localhost.example/',
  ];
  for (const url of [...accepted, 'http://mylocalhost.com/', 'http://bücher.example/', 'http://[2606:4700::1111]/'])
    assert.equal(checkUrl(url).ok, true, url);
});

test('the allow list opens CIDRs, addresses, names and names under a name, and nothing else', () => {
  const allow = parseAllowList(['10.0.0.0/8', 'fd00::/8', '192.168.7.7', 'wiki.corp', '*.intra.example']);
  for (const url of ['http://10.9.8.7/', 'http://[fd00::5]/', 'http://192.168.7.7/', 'http://wiki.corp/'])
    assert.equal(checkUrl(url, allow).ok, true, url);
  for (const url of ['http://11.0.0.1/', 'http://192.168.7.8/', 'http://127.0.0.1/', 'http://localhost/'])
    assert.equal(checkUrl(url, allow).ok, url === 'http://11.0.0.1/', url);
  assert.equal(allow.allowsHost('a.intra.example'), true);
  assert.equal(allow.allowsHost('intra.example'), false);
  assert.equal(allow.allowsHost('evil-intra.example'), false);
  assert.equal(allow.allowsAddress('::ffff:10.1.1.1'), true);
  assert.equal(checkUrl('http://localhost:9/x'.replace(':9', ':8080'), parseAllowList(['127.0.0.0/8'])).ok, true);
  assert.throws(() => parseAllowList(['http://x/']));
});
