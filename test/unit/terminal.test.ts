import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sanitizeForTerminal } from '../../src/cli/terminal.ts';

test('text for a terminal keeps lines and colours, and no other command', () => {
  assert.equal(sanitizeForTerminal('a\tb\n\u001b[31mred\u001b[0m ž 🪨'), 'a\tb\n\u001b[31mred\u001b[0m ž 🪨');
  const commands = [
    '\u001b[2J',
    '\u001b]0;title\u0007',
    '\u001b]52;c;YQ==\u0007',
    '\r',
    '\b',
    '\u009b2J',
    '\u001bc',
    '\u202e',
  ];
  for (const command of commands) {
    const shown = sanitizeForTerminal(`a${command}b`);
    assert.doesNotMatch(shown, /\p{Cc}|\u202e/u, JSON.stringify(command));
    assert.match(shown, /^a.*b$/);
  }
});
