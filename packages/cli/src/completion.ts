import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { type Candidate, completeWords } from './complete-words.ts'
import type { Terminal } from './terminal.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/**
 * `wf completion bash|zsh|fish`, and the hidden command that the scripts call. Both print lines for a shell, and no
 * JSON.
 */
export function addCompletionCommands(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .description('Print the script that completes commands and options in a shell.')
    .addArgument(program.createArgument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', HELP)
    .action((shell: Shell) => terminal.write(SCRIPTS[shell]))
  program
    .command('complete', { hidden: true })
    .argument('[words...]', 'the words after "wf", the last one to be completed')
    .action((words: string[]) => terminal.write(completeWords(program, words).map(toLine).join('')))
}

/**
 * The paths, because aliases are not expanded in functions, npm would take longer than wf, and both work in every
 * folder.
 */
const MAIN = import.meta.url.endsWith('.ts') ? './main.ts' : './main.js'
const COMMAND = [process.execPath, fileURLToPath(new URL(MAIN, import.meta.url))].map(quote).join(' ')

const HELP = `
With this alias, wf and its completion work in every folder:
  alias wf="${COMMAND}"
  source <(wf completion bash)   # in ~/.bashrc
  source <(wf completion zsh)    # in ~/.zshrc, after compinit
  wf completion fish > ~/.config/fish/completions/wf.fish
`

function toLine({ value, description }: Candidate): string {
  return `${value}\t${description}\n`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

const SCRIPTS: Record<Shell, string> = {
  bash: `_wf() {
  local line value word=\${COMP_WORDS[COMP_CWORD]} words=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  local plain=\${word#[\\"\\']}
  words=("\${words[@]//[\\"\\'\\\\]/}")
  COMPREPLY=()
  while IFS= read -r line; do
    value=\${line%%$'\\t'*}
    if [[ $word == [\\"\\']* ]]; then COMPREPLY+=("$value"); else COMPREPLY+=("$(printf %q "$value")"); fi
  done < <(${COMMAND} complete -- "\${words[@]}" "\${plain//\\\\/}" 2>/dev/null)
}
complete -o default -F _wf wf
`,
  zsh: `#compdef wf
_wf() {
  local line
  local -a values shown
  for line in "\${(@f)$(${COMMAND} complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    values+=("\${line%%$'\\t'*}")
    shown+=("\${line/$'\\t'/  }")
  done
  if (( $#values )); then compadd -l -d shown -a values; else _files; fi
}
compdef _wf wf
`,
  fish: `function __wf_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (${COMMAND} complete -- $words[2..-1] 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c wf -f -a '(__wf_complete)'
`,
}
