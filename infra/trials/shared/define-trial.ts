import { parseArgs } from 'node:util'
import type { PrivatePostgres, PrivateRabbitMq } from '@workflow-service/testkit'

/** Writes a line of progress, to stderr: stdout has the result. */
export type Log = (line: string) => void

/** What every trial gets. */
export interface TrialOptions {
  readonly log: Log
  /** Default: starts one, and stops it. */
  readonly rabbitMq?: PrivateRabbitMq
  /** Gives a migrated database of a server that the trial may kill. Default: starts a server. */
  readonly openDatabase?: () => Promise<PrivatePostgres>
}

/** What `pnpm trial NAME` runs. */
export interface Trial {
  readonly summary: string
  help(name: string): string
  /** Resolves to the broken promises. @throws UsageError */
  run(name: string, args: readonly string[]): Promise<readonly string[]>
}

/** The command line is wrong. */
export class UsageError extends Error {}

type Value = string | number | boolean
type Widened<Each extends Value> = Each extends string ? string : Each extends number ? number : boolean
type Given<Options extends Record<string, Value>> = { readonly [Name in keyof Options]: Widened<Options[Name]> }

interface TrialDefinition<Options extends Record<string, Value>> {
  readonly summary: string
  /** What may follow the name, to run only that. */
  readonly parts?: readonly string[]
  /** Without a choice. Default: all. */
  readonly defaultParts?: readonly string[]
  /** Each with its meaning and its default, of which it has the type. An empty text is one that is not given. */
  readonly options: { readonly [Name in keyof Options]: readonly [help: string, fallback: Options[Name]] }
  readonly run: (given: { options: Given<Options>; parts: readonly string[]; log: Log }) => Promise<readonly string[]>
}

export function defineTrial<Options extends Record<string, Value>>(definition: TrialDefinition<Options>): Trial {
  const { summary, parts = [], defaultParts = parts, options, run } = definition
  const entries = Object.entries<readonly [help: string, fallback: Value]>(options)
  const readArguments = (args: readonly string[]): { options: Given<Options>; parts: readonly string[] } => {
    const types = entries.map(([option, [, fallback]]) => [
      option,
      { type: typeof fallback === 'boolean' ? ('boolean' as const) : ('string' as const) },
    ])
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(types) as Record<string, { type: 'boolean' | 'string' }>,
    })
    const unknown = positionals.find((part) => !parts.includes(part))
    if (unknown !== undefined) throw new Error(`"${unknown}" is unknown.`)
    const read = entries.map(([option, [, fallback]]) => {
      const value = values[option] ?? fallback
      if (typeof fallback !== 'number') return [option, value]
      if (Number(value) >= 0) return [option, Number(value)]
      throw new Error(`--${option} must be a number`)
    })
    const given = Object.fromEntries(read) as Given<Options>
    return { options: given, parts: positionals.length > 0 ? positionals : defaultParts }
  }
  const help = (name: string): string =>
    [
      `pnpm trial ${name}${parts.length > 0 ? ' [PART…]' : ''} [OPTIONS]: ${summary}`,
      ...(parts.length > 0 ? [`  PART: ${parts.join(', ')}`] : []),
      ...entries.map(([option, [meaning, fallback]]) => {
        const ending = typeof fallback === 'boolean' || fallback === '' ? '' : ` (${fallback})`
        return `  --${option.padEnd(24)} ${meaning}${ending}`
      }),
    ].join('\n')
  return {
    summary,
    help,
    async run(name, args) {
      let given
      try {
        given = readArguments(args)
      } catch (error) {
        throw new UsageError(`${(error as Error).message}\n${help(name)}`)
      }
      return await run({ ...given, log: (line) => void process.stderr.write(`${line}\n`) })
    },
  }
}
