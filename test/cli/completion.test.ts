import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { callQuarry } from '../support/command.ts';

/* Each script is run by its own shell, where that is installed; bash always is. */

const cases: [line: string, offered: string[], absent: string[]][] = [
  ['quarry lo', ['login', 'logout'], ['retry']],
  ['quarry runs ', ['list', 'cancel', 'signal', 'retry', 'watch'], ['login']],
  ['quarry kv put theme dark --t', ['--ttl', '--token'], ['--payload']],
  ['quarry users list --se', ['--search'], ['--set']],
];

/** What each shell runs to print its offers for a line. */
const asks = {
  bash: (script: string, line: string) => `${script}
    COMP_WORDS=(${line.endsWith(' ') ? `${line}''` : line}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1))
    _quarry; printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (script: string, line: string) => `compdef() { : }; _files() { : }; compadd() { shift; print -rl -- "$@" }
    ${script}
    words=(${line.endsWith(' ') ? `${line}''` : line}); CURRENT=$#words; PREFIX=; _quarry`,
  fish: (script: string, line: string) => `${script}\ncomplete -C '${line}'`,
};

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const missing = spawnSync(shell, ['-c', 'true']).error !== undefined;
  test(`${shell} offers the commands and options that can follow`, { skip: missing && shell !== 'bash' }, async () => {
    const { code, stdout: script } = await callQuarry(['completion', shell]);
    assert.equal(code, 0);
    for (const [line, offered, absent] of cases) {
      const ran = spawnSync(shell, ['-c', asks[shell](script, line)], { encoding: 'utf8' });
      assert.equal(ran.status, 0, ran.stderr);
      const words = ran.stdout.split('\n').map((each) => each.split('\t')[0] ?? '');
      for (const word of offered) assert.ok(words.includes(word), `${line}: ${ran.stdout}`);
      for (const word of absent) assert.ok(!words.includes(word), `${line}: ${ran.stdout}`);
    }
  });
}

test('an unknown shell is refused', async () => {
  const ran = await callQuarry(['completion', 'csh']);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /bash, zsh, fish/);
});
