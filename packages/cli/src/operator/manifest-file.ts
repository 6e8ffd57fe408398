import type { Manifest, ManifestFieldError } from '@workflow-service/contract'
import { manifestErrors, toManifest, toRawJson } from '@workflow-service/database/manifest'
import { isRoundedDecimal } from '@workflow-service/rules/convert-value'
import { type Document, isNode, LineCounter, parseDocument, visit } from 'yaml'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { readText } from '../read-file.ts'

export interface ManifestFile {
  /** The name as the user gave it. */
  readonly name: string
  /** What of it is valid: without the entries of its lists that have errors. */
  readonly manifest: Manifest
  /** The errors of its shape. */
  readonly errors: readonly FileError[]
  /** Finds a path in `manifest`, such as `workflows[0].name`: its path in the file, and its line or its parent's. */
  readonly locate: (path: string) => Pick<FileError, 'file' | 'path' | 'line'>
}

export interface FileError extends ManifestFieldError {
  readonly file: string
  readonly line?: number
}

/** Limits aliases, so that a small file cannot expand to gigabytes ("billion laughs"). */
const MAX_ALIASES = 100
const TOO_MANY_ALIASES = `uses more than ${MAX_ALIASES} aliases; repeat the content instead, or split the file`
const NESTED_TOO_DEEPLY = 'is nested too deeply'
const TOO_MANY_DIGITS = 'is a number with more digits than are kept; write fewer, or a text in quotes'
const NOT_FINITE = 'is no finite number; write a smaller one, or a text in quotes'

/** In place of the messages of the YAML library, which address programmers. */
const ADVICE: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'has several documents (---); put each manifest into its own file',
  RESOURCE_EXHAUSTION: NESTED_TOO_DEEPLY,
}

/**
 * Reads and validates the files, YAML or JSON; `-` is standard input.
 * @throws CliError with the errors of all files if nothing in one of them can be checked any further.
 */
export async function readManifestFiles(ctx: CliContext, names: readonly string[]): Promise<ManifestFile[]> {
  const texts = await Promise.all(names.map(async (name) => await readText(ctx, name)))
  const files = texts.map((text, index) => parseManifest(names[index] ?? '', text))
  const errors = files.flatMap((file) => file.errors)
  return files.map(({ name, value, lineOf, errors: own }) => {
    const valid = withoutInvalidEntries(value, own)
    if (!valid) throw manifestFileError(errors)
    const locate = (given: string) => {
      const path = valid.pathOf(given)
      return { file: name, path, line: lineOf(path) }
    }
    return { name, manifest: valid.manifest, errors: own, locate }
  })
}

/** Undefined if an error is not one of an entry, so that what depends on it cannot be checked. */
function withoutInvalidEntries(
  value: unknown,
  errors: readonly FileError[],
): { manifest: Manifest; pathOf: (path: string) => string } | undefined {
  const invalid = new Set(errors.map(({ path }) => ENTRY.exec(path)?.[0] ?? ''))
  if (invalid.has('')) return undefined
  const indexes = new Map<string, number[]>()
  const manifest = Object.fromEntries(
    Object.entries(value as object).map(([name, entries]: [string, unknown]) => {
      if (!Array.isArray(entries)) return [name, entries]
      const kept = [...entries.keys()].filter((index) => !invalid.has(`${name}[${index}]`))
      indexes.set(name, kept)
      return [name, kept.map((index) => entries[index] as unknown)]
    }),
  )
  const toOriginal = (_whole: string, name: string, index: string) => `${name}[${indexes.get(name)?.[Number(index)]}]`
  return { manifest: toManifest(manifest), pathOf: (path) => path.replace(ENTRY, toOriginal) }
}

/** An entry of a list of the manifest, at the beginning of a path. */
const ENTRY = /^(\w+)\[(\d+)\]/

/** Returns an error that lists the manifests' errors, one per line. */
export function manifestFileError(errors: readonly FileError[]): CliError {
  const lines = errors.map(({ file, line, path, message }) => {
    const position = line === undefined ? '' : `  (line ${line})`
    return `  ${file}: ${path === '' ? '' : `${path}: `}${message}${position}`
  })
  const count = errors.length === 1 ? 'One error' : `${errors.length} errors`
  return new CliError(`Nothing was applied. ${count}:\n${lines.join('\n')}`, { faults: errors })
}

/** Parses and validates one file. When its syntax is wrong, only the syntax errors are reported. */
export function parseManifest(
  name: string,
  text: string,
): { name: string; value: unknown; errors: FileError[]; lineOf: (path: string) => number | undefined } {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    merge: true,
    resolveKnownTags: false,
    intAsBigInt: true,
    logLevel: 'error',
  })
  const invalid = (...errors: { message: string; line?: number }[]) => ({
    name,
    value: undefined,
    errors: errors.map((error) => ({ file: name, path: '', ...error })),
    lineOf: () => undefined,
  })
  const lineAt = (position: number) => lines.linePos(position).line
  const syntaxErrors = [...document.errors, ...document.warnings]
  if (syntaxErrors.length > 0) {
    return invalid(
      ...syntaxErrors.map(({ code, message, pos }) => ({ message: ADVICE[code] ?? message, line: lineAt(pos[0]) })),
    )
  }
  if (document.contents === null) return invalid({ message: 'is empty; a manifest begins with "organization:"' })
  const lineOf = (path: string): number | undefined => findLine(document, lines, path)
  try {
    const lost: { message: string; line: number }[] = []
    visit(document, {
      Scalar(_key, { value, source = '', range }) {
        if (typeof value !== 'number') return
        const problem = !Number.isFinite(value) ? NOT_FINITE : isRoundedDecimal(source) ? TOO_MANY_DIGITS : undefined
        if (problem) lost.push({ message: `${source.slice(0, 40)} ${problem}`, line: lineAt(range![0]) })
      },
    })
    if (lost.length > 0) return invalid(...lost)
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES, reviver: keepDigits })
    const errors = manifestErrors(value)
      .map((error) => ({ file: name, ...error, line: lineOf(error.path) }))
      .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    return { name, value, errors, lineOf }
  } catch (error) {
    const { message } = error as Error
    if (error instanceof RangeError) return invalid({ message: NESTED_TOO_DEEPLY })
    return invalid({ message: message.startsWith('Excessive alias count') ? TOO_MANY_ALIASES : message })
  }
}

/** Keeps all digits of integers that a JavaScript number would round, because filters are stored as written. */
function keepDigits(_key: unknown, value: unknown): unknown {
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : toRawJson(value)
}

function findLine(document: Document.Parsed, lines: LineCounter, path: string): number | undefined {
  const steps = [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name]) =>
    index === undefined ? (name ?? '') : Number(index),
  )
  for (let length = steps.length; length >= 0; length -= 1) {
    const node = length === 0 ? document.contents : document.getIn(steps.slice(0, length), true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  }
  return undefined
}
