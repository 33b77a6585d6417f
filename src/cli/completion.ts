import type { Command } from 'commander';

/** What can follow a command: its subcommands and options. */
type Words = { path: string; words: string[] };

/** `quarry completion <shell>`: returns a script for the shell, generated from the commands. */
export function completionScript(program: Command, shell: 'bash' | 'zsh' | 'fish'): string {
  const all = wordsOf(program, '');
  if (shell === 'fish') return fishScript(all);
  const cases = all.map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`).join('\n');
  const groups = all.map(({ path }) => path).filter((path) => path !== '');
  return shell === 'bash' ? bashScript(cases, groups) : zshScript(cases, groups);
}

function wordsOf(command: Command, path: string): Words[] {
  const below = command.commands.filter((each) => each.name() !== 'help');
  const options = command.options.flatMap(({ long }) => (long ? [long] : []));
  const own = { path, words: [...below.map((each) => each.name()), ...options, '--help'] };
  return [own, ...below.flatMap((each) => wordsOf(each, `${path} ${each.name()}`.trim()))];
}

/** Shell code that sets `path` to the longest command in the words before the cursor. */
function findPath(groups: string[], words: string): string {
  return `  local path= next= word= words=
  for word in ${words}; do
    next="\${path:+$path }$word"
    case "$next" in
      ${groups.map((path) => `'${path}'`).join('|')}) path="$next" ;;
    esac
  done`;
}

function bashScript(cases: string, groups: string[]): string {
  return `# Completion of quarry for bash. Load it with: source <(quarry completion bash)
_quarry() {
${findPath(groups, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  case "$path" in
${cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _quarry quarry
`;
}

function zshScript(cases: string, groups: string[]): string {
  // Assigning to zsh's own arrays \`path\` and \`words\` would change its PATH and its command line.
  const script = `${findPath(groups, `"\${(@)command_line[2,CURRENT-1]}"`)}
  case "$path" in
${cases}
  esac`
    .replaceAll(/\bpath\b(?==|\}|:)|\$path\b/g, (name) => name.replace('path', 'command_path'))
    .replaceAll(/\bwords=/g, 'choices=');
  return `#compdef quarry
# Completion of quarry for zsh. Load it with: source <(quarry completion zsh)
_quarry() {
  local -a command_line=("\${(@)words}")
${script}
  compadd -- \${=choices}
  [[ "$PREFIX" == -* ]] || _files
}
compdef _quarry quarry
`;
}

function fishScript(all: Words[]): string {
  const lines = all.flatMap(({ path, words }) => {
    const condition = `test (__quarry_path) = '${path}'`;
    return words.map((word) =>
      word.startsWith('--')
        ? `complete -c quarry -n "${condition}" -l ${word.slice(2)}`
        : `complete -c quarry -n "${condition}" -f -a ${word}`,
    );
  });
  const groups = all.map(({ path }) => `'${path}'`).join(' ');
  return `# Completion of quarry for fish. Load it with: quarry completion fish | source
function __quarry_path
  set -l found ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$found $word")
    contains -- "$next" ${groups}; and set found $next
  end
  echo "$found"
end
${lines.join('\n')}
`;
}
