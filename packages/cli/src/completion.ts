import { fileURLToPath } from 'node:url'
import type { Command, Option } from 'commander'
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
    .action((words: string[]) => terminal.write(completeWords(program, words)))
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

/** Lists what the last of the words after `wf` can be: commands, options, or choices of an option or argument. */
function completeWords(program: Command, words: readonly string[]): string {
  const start = (words.at(-1) ?? '').toLowerCase()
  const found = listCandidates(program, words).filter(({ value }) => value.toLowerCase().startsWith(start))
  return found.map(({ value, description }) => `${value}\t${description}\n`).join('')
}

function listCandidates(program: Command, words: readonly string[]) {
  let command = program
  let option: Option | undefined
  let argumentCount = 0
  for (const word of words.slice(0, -1)) {
    if (option) {
      option = undefined
    } else if (word.startsWith('-')) {
      const [flag, value] = word.split('=', 2)
      const known = command.options.find(({ long, short }) => long === flag || short === flag)
      if (known?.required && value === undefined) option = known
    } else {
      const next = command.commands.find((each) => each.name() === word)
      argumentCount = next ? 0 : argumentCount + 1
      command = next ?? command
    }
  }
  const help = command.createHelp()
  if (!option && words.at(-1)?.startsWith('-')) {
    return help
      .visibleOptions(command)
      .map(({ long, short, description }) => ({ value: long ?? short ?? '', description }))
  }
  const subcommands = help.visibleCommands(command)
  if (!option && subcommands.length > 0) {
    return subcommands.map((each) => ({ value: each.name(), description: each.summary() || each.description() }))
  }
  const choices = (option ?? command.registeredArguments[argumentCount])?.argChoices ?? []
  return choices.map((value) => ({ value, description: '' }))
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
