import { parseArgs } from 'node:util'

/** Writes a line of progress, to stderr: stdout has the result. */
export type Log = (line: string) => void

/** What `pnpm trial NAME` runs. */
export interface Trial {
  readonly summary: string
  readonly help: string
  /** Resolves to the broken promises. @throws UsageError */
  run(args: readonly string[]): Promise<readonly string[]>
}

export interface Option<Value> {
  readonly help: string
  /** Names the value in the help; a flag has none. */
  readonly value?: string
  readonly fallback: Value
  /** @throws Error that says what the text must be. */
  readonly read: (text: string, option: string) => Value
}

/** The command line is wrong. Its text needs no stack. */
export class UsageError extends Error {
  override toString(): string {
    return this.message
  }
}

interface TrialDefinition<Options> {
  readonly name: string
  readonly summary: string
  /** What may follow the name, to run only that. */
  readonly parts?: readonly string[]
  /** Without a choice. Default: all. */
  readonly defaultParts?: readonly string[]
  readonly options: { readonly [Name in keyof Options]: Option<Options[Name]> }
  readonly run: (given: { options: Options; parts: readonly string[]; log: Log }) => Promise<readonly string[]>
}

export function defineTrial<Options>(definition: TrialDefinition<Options>): Trial {
  const { name, summary, parts = [], defaultParts = parts, options, run } = definition
  const entries = Object.entries<Option<unknown>>(options)
  const help = [
    `pnpm trial ${name}${parts.length > 0 ? ' [PART…]' : ''} [OPTIONS]: ${summary}`,
    ...(parts.length > 0 ? [`  PART: ${parts.join(', ')}`] : []),
    ...entries.map(([option, { value, help: meaning, fallback }]) => {
      const ending = value === undefined || fallback === undefined ? '' : ` (${fallback as string | number})`
      return `  --${`${option} ${value ?? ''}`.padEnd(26)} ${meaning}${ending}`
    }),
  ].join('\n')
  const readArguments = (args: readonly string[]): { options: Options; parts: readonly string[] } => {
    const types = entries.map(([option, { value }]) => [option, { type: value === undefined ? 'boolean' : 'string' }])
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(types) as Record<string, { type: 'boolean' | 'string' }>,
    })
    const unknown = positionals.find((part) => !parts.includes(part))
    if (unknown !== undefined) throw new Error(`"${unknown}" is unknown.`)
    const read = entries.map(([option, { fallback, read: readText }]) => {
      const given = values[option]
      return [option, typeof given === 'string' ? readText(given, `--${option}`) : (given ?? fallback)]
    })
    return { options: Object.fromEntries(read) as Options, parts: positionals.length > 0 ? positionals : defaultParts }
  }
  return {
    summary,
    help,
    async run(args) {
      let given
      try {
        given = readArguments(args)
      } catch (error) {
        throw new UsageError(`${(error as Error).message}\n${help}`)
      }
      return await run({ ...given, log })
    },
  }
}

export function whole(help: string, fallback: number, { least = 1, most = Infinity } = {}): Option<number> {
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`
  return {
    help,
    value: 'COUNT',
    fallback,
    read(given, option) {
      if (/^\d+$/.test(given) && Number(given) >= least && Number(given) <= most) return Number(given)
      throw new Error(`${option} must be a whole number ${range}`)
    },
  }
}

/** A number above 0, perhaps with decimals. */
export function positive<Fallback>(help: string, fallback: Fallback): Option<number | Fallback> {
  return {
    help,
    value: 'NUMBER',
    fallback,
    read(given, option) {
      if (Number(given) > 0) return Number(given)
      throw new Error(`${option} must be a number above 0`)
    },
  }
}

/** A name of a file, folder or image. */
export function anyText<Fallback extends string | undefined>(
  help: string,
  fallback?: Fallback,
): Option<string | Fallback> {
  return { help, value: 'NAME', fallback: fallback as Fallback, read: (given) => given }
}

export function flag(help: string): Option<boolean> {
  return { help, fallback: false, read: () => true }
}

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}
