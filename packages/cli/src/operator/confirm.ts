import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'

export interface Confirmation {
  /** What is done, as a sentence. */
  readonly what: string
  /** How the question calls the word: `its name`. Default: the word in quotes. */
  readonly asked?: string
  readonly word: string
  /** What the error says that was not done. */
  readonly refusal: string
}

/** Asks for a word before what cannot be undone, unless `--yes` is given. @throws CliError if it is not entered. */
export async function confirm(
  { terminal: { ask } }: CliContext,
  { yes }: { readonly yes?: boolean },
  { what, word, asked = `"${word}"`, refusal }: Confirmation,
): Promise<void> {
  if (yes) return
  if (!ask) throw new CliError(`${refusal} Without a terminal, --yes confirms it. ${what}`)
  if ((await ask(`${what} Enter ${asked} to go on: `)) !== word) throw new CliError(`This is not ${asked}. ${refusal}`)
}
