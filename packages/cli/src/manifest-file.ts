import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { type ManifestFieldError } from '@workflow-service/contract'
import { manifestErrors, toManifest } from '@workflow-service/database'
import type { Manifest } from '@workflow-service/contract'
import { type Document, isNode, LineCounter, parseAllDocuments, type YAMLError } from 'yaml'
import { Refusal } from './refusal.ts'

/** A manifest as read from a file. */
export interface ManifestFile {
  /** As the user named it. */
  readonly name: string
  readonly manifest: Manifest
  /** The line of a path such as `workflows[0].name`; of its nearest parent where the path itself is missing. */
  readonly lineOf: (path: string) => number | undefined
}

/** A fault with the file that has it. */
export interface FileFault extends ManifestFieldError {
  readonly file: string
  readonly line?: number
}

/** Anchors and aliases may repeat a part; more uses than this can only be meant to fill the memory. */
const MAX_ALIASES = 100

/**
 * Reads the files, YAML or JSON; `-` is standard input. Every one of them is checked whole before any is returned.
 * @throws Refusal with every fault of every file.
 */
export async function readManifestFiles(names: readonly string[], stdin = process.stdin): Promise<ManifestFile[]> {
  const texts = await Promise.all(names.map(async (name) => await readText(name, stdin)))
  const files = texts.map((text, index) => parseManifest(names[index] ?? '', text))
  const faults = files.flatMap((file) => file.faults)
  if (faults.length > 0) throw manifestRefusal(faults)
  return files.map(({ name, value, lineOf }) => ({ name, lineOf, manifest: toManifest(value) }))
}

/** The refusal that lists the faults, a line each. */
export function manifestRefusal(faults: readonly FileFault[]): Refusal {
  const lines = faults.map(({ file, line, path, message }) => {
    const place = line === undefined ? '' : `  (line ${line})`
    return `  ${file}: ${path === '' ? '' : `${path}: `}${message}${place}`
  })
  return new Refusal(`Nothing was applied. ${count(faults.length)}:\n${lines.join('\n')}`, { faults })
}

function count(faults: number): string {
  return faults === 1 ? 'One fault' : `${faults} faults`
}

async function readText(name: string, stdin: NodeJS.ReadableStream): Promise<string> {
  try {
    const bytes = name === '-' ? Buffer.from(await readAll(stdin)) : await readFile(name)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why: Record<string, string> = {
      ENOENT: 'there is no such file',
      EISDIR: 'it is a folder',
      EACCES: 'it may not be read',
      ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text',
    }
    throw new Refusal(`${name} cannot be read: ${why[code ?? ''] ?? message}.`, {}, error)
  }
}

/** A file's value and faults, those of the syntax first. */
export function parseManifest(
  name: string,
  text: string,
): { name: string; value: unknown; faults: FileFault[]; lineOf: (path: string) => number | undefined } {
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    merge: true,
    resolveKnownTags: false,
    intAsBigInt: true,
    logLevel: 'silent',
  })
  const [document, second] = [...documents]
  const broken = (message: string, line?: number) => ({
    name,
    value: undefined,
    faults: [{ file: name, path: '', message, ...(line === undefined ? {} : { line }) }],
    lineOf: () => undefined,
  })
  if (!document) return broken('is empty: a manifest begins with "organization:"')
  if (second) {
    const line = lines.linePos(second.range[0]).line
    return broken('holds several documents (---): put each manifest into a file of its own', line)
  }
  const troubles = [...document.errors, ...document.warnings]
  if (troubles.length > 0) {
    const faults = troubles.map((trouble) => {
      const { line } = lines.linePos(trouble.pos[0])
      return { file: name, path: '', message: inWords(trouble), line }
    })
    return { name, value: undefined, faults, lineOf: () => undefined }
  }
  const lineOf = (path: string): number | undefined => findLine(document, lines, path)
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES, reviver: keepDigits })
    const faults = manifestErrors(value)
      .map((fault) => ({ file: name, ...fault, line: lineOf(fault.path) }))
      .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    return { name, value, faults, lineOf }
  } catch (error) {
    return broken(error instanceof Error ? toJsFault(error.message) : String(error))
  }
}

function toJsFault(message: string): string {
  if (message.startsWith('Excessive alias count')) {
    return `repeats its anchors more than ${MAX_ALIASES} times: write the parts out, or split the file`
  }
  return message
}

function inWords({ code, message }: YAMLError): string {
  switch (code) {
    case 'DUPLICATE_KEY':
      return 'the same name twice in one object'
    case 'TAB_AS_INDENT':
      return 'a tab as indentation: YAML takes spaces only'
    case 'RESOURCE_EXHAUSTION':
      return 'nested too deeply'
    case 'NON_STRING_KEY':
      return 'a name that is no text'
    default:
      return message
  }
}

/** Whole numbers that a JavaScript number would round keep their digits: filters are kept exactly as written. */
function keepDigits(_key: unknown, value: unknown): unknown {
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : (JSON as unknown as RawJson).rawJSON(String(value))
}

/** In Node 24, not yet in TypeScript's library. */
interface RawJson {
  rawJSON(text: string): unknown
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
