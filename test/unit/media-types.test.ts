import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'content-disposition';
import { dispositionOf, isActive, isImage, mediaTypePattern } from '../../src/files/media-types.ts';
import fc from '../support/fast-check.ts';

test('the header of any filename is one line of ASCII, names no path and decodes to the name', () => {
  const nasty = fc.constantFrom(
    '../',
    '..\\',
    '\r\nSet-Cookie: a=b',
    '"',
    ';',
    '\u202e',
    '\u0000',
    '%',
    "'",
    '日',
    '😀',
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(nasty, fc.string({ unit: 'grapheme' })), { maxLength: 8 }), (parts) => {
      const filename = parts.join('');
      const header = dispositionOf(filename, 'attachment');
      assert.match(header, /^attachment; filename=[ -~]*$/);
      assert.doesNotMatch(header, /[/\\]/);
      assert.equal(parse(header).parameters.filename, filename.toWellFormed());
    }),
  );
});

test('a media type has no room for another header', () => {
  const pattern = new RegExp(mediaTypePattern.pattern);
  for (const type of ['text/plain', 'text/plain; charset=utf-8', 'image/svg+xml', 'a/b;c="d e\\"";f=g'])
    assert.match(type, pattern);
  for (const type of [
    '',
    'text',
    'text/',
    '/plain',
    'text/plain\r\nx: y',
    'text/plain;',
    'text/plain; a',
    'a b/c',
    'é/a',
  ])
    assert.doesNotMatch(type, pattern);
});

test('content that a browser would run is active, and so are unknown types', () => {
  for (const type of ['text/html', 'IMAGE/SVG+XML; a=b', 'application/xhtml+xml', 'text/xml', 'text/javascript', 'x/y'])
    assert.ok(isActive(type), type);
  for (const type of ['image/png', 'text/plain; charset=utf-8', 'application/pdf', 'video/mp4'])
    assert.ok(!isActive(type), type);
});

test('only a declared image type is an image', () => {
  for (const type of ['image/png', 'Image/JPEG', 'image/svg+xml; charset=utf-8']) assert.ok(isImage(type), type);
  for (const type of ['text/image', 'application/image/png', 'images/png', 'image', 'image/'])
    assert.ok(!isImage(type));
});
