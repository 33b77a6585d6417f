import assert from 'node:assert/strict';
import { test } from 'node:test';
import iconv from 'iconv-lite';
import { parsePage } from '../../src/content/parse/html/page.ts';
import { parseDocument } from '../../src/content/parse/parse.ts';

/* The sentences are our own, about ships and weather, one for each script. */

const texts = {
  russian: 'Утром пароход вышел из порта, и капитан записал погоду: ветер слабый, волна невысокая, видимость хорошая.',
  ukrainian: 'Вранці пароплав вийшов із порту, і капітан записав погоду: вітер слабкий, хвиля невисока, їжі досить.',
  french:
    'Le matin, le vapeur a quitté le port ; le capitaine a noté la météo : vent léger, mer calme, été déjà là, où ça.',
  greek: 'Το πρωί το ατμόπλοιο έφυγε από το λιμάνι και ο καπετάνιος έγραψε τον καιρό: ο άνεμος είναι ασθενής.',
  turkish:
    'Sabah vapur limandan ayrıldı ve kaptan havayı yazdı: rüzgâr hafif, deniz sakin, görüş iyi, güneş şimdi çıktı.',
  hebrew: 'בבוקר יצאה ספינת הקיטור מן הנמל, ורב החובל רשם את מזג האוויר: רוח קלה, ים שקט וראות טובה.',
  arabic: 'في الصباح غادرت الباخرة الميناء وكتب القبطان حالة الطقس: الريح خفيفة والبحر هادئ والرؤية جيدة.',
  thai: 'ตอนเช้าเรือกลไฟออกจากท่าเรือ และกัปตันบันทึกสภาพอากาศ ลมอ่อน คลื่นต่ำ ทัศนวิสัยดี',
  japanese: '朝、汽船は港を出ました。船長は天気を書きました。風は弱く、波は低く、カモメが鳴いています。',
  chinese: '早晨,轮船离开了港口。船长记下了天气:风力微弱,海浪不高,能见度良好,海鸥在叫。',
  traditional: '早晨,輪船離開了港口。船長記下了天氣:風力微弱,海浪不高,能見度良好,海鷗在叫。',
  korean: '아침에 기선이 항구를 떠났습니다. 선장은 날씨를 적었습니다. 바람은 약하고 파도는 낮으며 시야는 좋습니다.',
  polish:
    'Rano parowiec wypłynął z portu, a kapitan zapisał pogodę: słaby wiatr, niska fala, dobra widoczność, żółte światło.',
};

type Case = [charset: string, text: string];
const declaredCases: Case[] = [
  ...([
    ['windows-1250', texts.polish],
    ['windows-1251', texts.russian],
    ['windows-1251', texts.ukrainian],
  ] as Case[]),
  ...([
    ['windows-1252', texts.french],
    ['windows-1253', texts.greek],
    ['windows-1254', texts.turkish],
  ] as Case[]),
  ...([
    ['windows-1255', texts.hebrew],
    ['windows-1256', texts.arabic],
    ['windows-874', texts.thai],
  ] as Case[]),
  ...([
    ['koi8-r', texts.russian],
    ['koi8-u', texts.ukrainian],
    ['iso-8859-2', texts.polish],
  ] as Case[]),
  ...([
    ['iso-8859-5', texts.russian],
    ['iso-8859-7', texts.greek],
    ['iso-8859-9', texts.turkish],
  ] as Case[]),
  ...([
    ['shift_jis', texts.japanese],
    ['euc-jp', texts.japanese],
    ['iso-2022-jp', texts.japanese],
  ] as Case[]),
  ...([
    ['gb18030', texts.chinese],
    ['gbk', texts.chinese],
    ['big5', texts.traditional],
  ] as Case[]),
  ...([
    ['euc-kr', texts.korean],
    ['utf-8', texts.japanese],
  ] as Case[]),
];
const wideCases: Case[] = ['utf-16le', 'utf-16be'].flatMap((charset) =>
  [texts.french, texts.russian, texts.japanese].map((text): Case => [charset, text]),
);

/** Bytes in a charset. iconv-lite has no ISO-2022-JP: its escapes surround the bytes of EUC-JP without their high bits. */
function encode(text: string, charset: string): Buffer {
  if (charset !== 'iso-2022-jp') return iconv.encode(text, charset, { addBOM: false });
  const parts = [...text].map((letter): [boolean, Buffer] => {
    const bytes = iconv.encode(letter, 'euc-jp');
    return [bytes.length > 1, Buffer.from(bytes.map((byte) => byte & 0x7f))];
  });
  const out: Buffer[] = [];
  let wide = false;
  for (const [isWide, bytes] of [...parts, [false, Buffer.alloc(0)] as [boolean, Buffer]]) {
    if (isWide !== wide) out.push(Buffer.from(isWide ? '\u001b$B' : '\u001b(B', 'latin1'));
    wide = isWide;
    out.push(bytes);
  }
  return Buffer.concat(out);
}

/** The text without what Markdown escapes and wraps. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\\(?=[^\w\s])/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

async function parse(bytes: Uint8Array, filename: string, contentType?: string): Promise<string> {
  const { markdown } = await parseDocument({ bytes, filename, ...(contentType ? { contentType } : {}) });
  return plain(markdown);
}

const body = (text: string, head = '') =>
  `<html><head>${head}<title>Log</title></head><body><p>${text}</p></body></html>`;

test('a declared charset is obeyed in text, HTML documents and web pages', async () => {
  for (const [charset, text] of declaredCases) {
    const type = `text/plain; charset=${charset}`;
    assert.equal(await parse(encode(text, charset), 'log.txt', type), plain(text), `text ${charset}`);
    const html = encode(body(text, `<meta charset="${charset}">`), charset);
    assert.equal(await parse(html, 'log.html'), plain(text), `document ${charset}`);
    const page = parsePage({ bytes: html, contentType: 'text/html', url: 'https://example.org/log' });
    assert.equal(plain(page.markdown), plain(text), `page ${charset}`);
    const sent = { bytes: encode(body(text), charset), contentType: `text/html; charset=${charset}` };
    assert.equal(
      plain(parsePage({ ...sent, url: 'https://example.org/log' }).markdown),
      plain(text),
      `sent ${charset}`,
    );
  }
});

test('UTF-16 is recognised by its mark in every script', async () => {
  for (const [charset, text] of wideCases) {
    const marked = iconv.encode(text, charset, { addBOM: true });
    assert.equal(await parse(marked, 'log.txt'), plain(text), charset);
    assert.equal(await parse(iconv.encode(body(text), charset, { addBOM: true }), 'log.html'), plain(text), charset);
  }
});

test('mails in every charset are read, as 8 bits, base64 and quoted-printable', async () => {
  for (const [charset, text] of declaredCases) {
    const bytes = encode(text, charset);
    const quoted = [...bytes].map((byte) => `=${byte.toString(16).padStart(2, '0').toUpperCase()}`);
    const bodies: Record<string, Buffer> = {
      base64: Buffer.from(bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n')),
      'quoted-printable': Buffer.from(quoted.join('').replaceAll(/(?:=..){20}/g, '$&=\r\n')),
      '8bit': bytes,
    };
    for (const [encoding, content] of Object.entries(bodies)) {
      const head = `From: a@example.org\r\nSubject: =?${charset}?B?${encode(text.slice(0, 9), charset).toString('base64')}?=\r
MIME-Version: 1.0\r\nContent-Type: text/plain; charset=${charset}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`;
      const read = await parse(Buffer.concat([Buffer.from(head), content]), 'log.eml');
      assert.ok(read.includes(plain(text)), `${charset} ${encoding}: ${read}`);
      assert.ok(read.startsWith(`# ${plain(text.slice(0, 9))}`), `subject ${charset}: ${read.slice(0, 60)}`);
    }
  }
});

/** The code page of a charset, and what RTF calls the character set of a font in it. */
const rtfPages: [page: number, fontCharset: number, charset: string, text: string][] = [
  [1250, 238, 'windows-1250', texts.polish],
  [1251, 204, 'windows-1251', texts.russian],
  [1252, 0, 'windows-1252', texts.french],
  [1253, 161, 'windows-1253', texts.greek],
  [1254, 162, 'windows-1254', texts.turkish],
  [1255, 177, 'windows-1255', texts.hebrew],
  [1256, 178, 'windows-1256', texts.arabic],
  [874, 222, 'windows-874', texts.thai],
  [932, 128, 'shift_jis', texts.japanese],
  [936, 134, 'gbk', texts.chinese],
  [950, 136, 'big5', texts.traditional],
  [949, 129, 'euc-kr', texts.korean],
];

test('RTF is read in the code page of the document and in that of its fonts', async () => {
  for (const [page, fontCharset, charset, text] of rtfPages) {
    const escaped = [...encode(text, charset)]
      .map((byte) =>
        byte < 0x80 && byte !== 0x5c && byte !== 0x7b && byte !== 0x7d
          ? String.fromCharCode(byte)
          : `\\'${byte.toString(16)}`,
      )
      .join('');
    const ofDocument = `{\\rtf1\\ansi\\ansicpg${page}{\\fonttbl{\\f0 Arial;}}\\f0 ${escaped}\\par}`;
    assert.equal(await parse(Buffer.from(ofDocument), 'log.rtf'), plain(text), `ansicpg ${page}`);
    const ofFont = `{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0\\fcharset${fontCharset} Arial;}}\\f0 ${escaped}\\par}`;
    assert.equal(await parse(Buffer.from(ofFont), 'log.rtf'), plain(text), `fcharset ${fontCharset}`);
  }
});

/** Not recognised without a declaration, as docs/extraction.md says. */
const unrecognised = ['utf-16be japanese', 'utf-16le japanese', 'windows-874 thai'];

test('a charset that nothing declares is recognised from one sentence, but for those that are named as unknown', async () => {
  const nameOf = new Map(Object.entries(texts).map(([name, text]) => [text, name]));
  const wrong = { text: new Set<string>(), page: new Set<string>() };
  for (const [charset, text] of [...declaredCases, ...wideCases]) {
    const name = `${charset} ${nameOf.get(text)}`;
    const read = await parse(encode(text, charset), 'log.txt').catch(() => '');
    if (read !== plain(text)) wrong.text.add(name);
    const page = { bytes: encode(body(text), charset), contentType: 'text/html', url: 'https://example.org/log' };
    if (plain(parsePage(page).markdown) !== plain(text)) wrong.page.add(name);
  }
  assert.deepEqual([...wrong.text].sort(), unrecognised);
  assert.deepEqual([...wrong.page].sort(), unrecognised);
});

test('UTF-16 without a mark is read when it is declared', async () => {
  for (const [charset, text] of wideCases)
    assert.equal(await parse(encode(text, charset), 'log.txt', `text/plain; charset=${charset}`), plain(text), charset);
  const ascii = 'Plain text whose declaration is wrong.';
  assert.equal(await parse(Buffer.from(ascii), 'log.txt', 'text/plain; charset=utf-16le'), ascii);
});
