/** JSON that JSON.stringify cannot write. Sent unchanged. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** The values that parameters and members are given. Parameters are texts. */
export type Values = { texts: readonly string[]; json: readonly unknown[] };

/** Texts that have broken a parser, a column, a header or a path in some program. */
export const awkwardTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'a\udfffb',
  '\uffff\u202e\u200b',
  'e\u0301🪨',
  '\r\nx-injected: yes',
  'line\nbreak\ttab',
  'null',
  'true',
  '-1',
  '0',
  '1.5',
  '1e400',
  '2147483648',
  '9007199254740993',
  '99999999999999999999',
  '0000-01-01',
  '9999-12-31T23:59:59-12:00',
  '2024-02-30T25:61:61Z',
  '../../etc/passwd',
  'a//b/./../c',
  '%00',
  '%zz',
  '%2525',
  '\\',
  '*',
  "'; drop table users; --",
  '<script>alert(1)</script>',
  '{{ $.a.b }}',
  '$$$[(',
  '__proto__',
  'constructor',
  'usr_0000000000000000000000',
  'fil_zzzzzzzzzzzzzzzzzzzzzz',
  'agt_0123456789abcdefghijkl',
  'http://169.254.169.254/latest/meta-data',
  'https://user:password@[::ffff:7f00:1]:99999/%zz',
  'javascript:alert(1)',
  'text/html; charset=utf-8\n',
  'x'.repeat(1_100),
  'x'.repeat(9_000),
];

function nested(levels: number): RawJson {
  return new RawJson('['.repeat(levels) + ']'.repeat(levels));
}

/** Other values for a member of a body. */
export const awkwardJson: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2_147_483_648,
  1e308,
  new RawJson('9007199254740993'),
  new RawJson('-1e400'),
  [],
  [null],
  [[]],
  ['', '\0'],
  {},
  { '': '' },
  { 'a\0': 1 },
  { a: '\ud800' },
  new RawJson('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'),
  new RawJson('{"a":1,"a":2}'),
  nested(99),
  nested(5_000),
  Array.from({ length: 1_001 }, () => ({})),
  Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`k${index}`, index])),
  'x'.repeat(300_000),
];
