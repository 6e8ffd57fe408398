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
  readonly read: (text: string) => Value
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
  readonly options: { readonly [Name in keyof Options]: Option<Options[Name]> }
  /** @param given.parts The chosen parts; empty without a choice. */
  readonly run: (given: { options: Options; parts: readonly string[]; log: Log }) => Promise<readonly string[]>
}

export function defineTrial<Options>({ name, summary, parts = [], options, run }: TrialDefinition<Options>): Trial {
  const entries = Object.entries<Option<unknown>>(options)
  const help = [
    `pnpm trial ${name}${parts.length > 0 ? ' [PART…]' : ''} [OPTIONS]: ${summary}`,
    ...(parts.length > 0 ? [`  PART: ${parts.join(', ')}`] : []),
    ...entries.map(([option, { value, help: meaning, fallback }]) => {
      const ending = value === undefined || fallback === undefined ? '' : ` (${fallback as string | number})`
      return `  --${`${option} ${value ?? ''}`.padEnd(26)} ${meaning}${ending}`
    }),
  ].join('\n')
  return {
    summary,
    help,
    async run(args) {
      const { values, positionals } = parse()
      const unknown = positionals.find((part) => !parts.includes(part))
      if (unknown !== undefined) throw new UsageError(`"${unknown}" is unknown.\n${help}`)
      const read = entries.map(([option, { fallback, value, read: readText }]) => {
        const given = values[option]
        if (given === undefined || value === undefined) return [option, given ?? fallback]
        try {
          return [option, readText(String(given))]
        } catch (error) {
          throw new UsageError(`--${option} ${(error as Error).message}\n${help}`)
        }
      })
      return await run({ options: Object.fromEntries(read) as Options, parts: positionals, log })

      function parse(): { values: Record<string, string | boolean | undefined>; positionals: string[] } {
        try {
          const types = Object.fromEntries(
            entries.map(([option, { value }]) => [
              option,
              { type: value === undefined ? 'boolean' : 'string' } as const,
            ]),
          )
          return parseArgs({ args: [...args], allowPositionals: true, options: types })
        } catch (error) {
          throw new UsageError(`${(error as Error).message}\n${help}`)
        }
      }
    },
  }
}

export function whole(help: string, fallback: number, { least = 1, most = Infinity } = {}): Option<number> {
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`
  return {
    help,
    value: 'COUNT',
    fallback,
    read(given) {
      if (/^\d+$/.test(given) && Number(given) >= least && Number(given) <= most) return Number(given)
      throw new Error(`must be a whole number ${range}`)
    },
  }
}

/** A number above 0, perhaps with decimals. */
export function positive<Fallback>(help: string, fallback: Fallback): Option<number | Fallback> {
  return {
    help,
    value: 'NUMBER',
    fallback,
    read(given) {
      if (Number(given) > 0) return Number(given)
      throw new Error('must be a number above 0')
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
