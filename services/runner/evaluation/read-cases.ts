import { globSync, readFileSync } from 'node:fs'
import { compile, isJsonObject } from '@workflow-service/contract'
import { CaseFile, type EvaluationCase } from './case-schema.ts'
import { findBadMatchers } from './matchers.ts'

/** A case file that cannot be used. The message names the file, the case and the field. */
export class CaseError extends Error {
  override name = 'CaseError'
}

const check = compile(CaseFile)

/**
 * Reads the cases of all files that the pattern matches, in the order of the files' names.
 * @throws CaseError for a file that cannot be read, and for a case that does not follow the schema or contradicts
 *   itself.
 */
export function readCases(pattern: string): EvaluationCase[] {
  const files = globSync(pattern).toSorted()
  if (files.length === 0) throw new CaseError(`No case file matches ${pattern}`)
  const fileById = new Map<string, string>()
  return files.flatMap((file) =>
    readCaseFile(file).map((entry) => {
      const other = fileById.get(entry.id)
      if (other !== undefined) throw new CaseError(`${file}: the id ${entry.id} is also in ${other}`)
      fileById.set(entry.id, file)
      return entry
    }),
  )
}

function readCaseFile(file: string): EvaluationCase[] {
  const content = parse(file)
  if (!check(content)) {
    const errors = (check.errors ?? []).map(({ instancePath, message = '', params }) => {
      const [, index = '', ...path] = instancePath.split('/')
      const unknownField = (params as { additionalProperty?: string }).additionalProperty
      const field = [...path, ...(unknownField === undefined ? [] : [unknownField])].join('.')
      return `${nameCase(content, index)}${field === '' ? '' : `, ${field}`}: ${message}`
    })
    throw toCaseError(file, [...new Set(errors)])
  }
  const errors = content.flatMap((entry) => findContradictions(entry).map((error) => `${entry.id}, ${error}`))
  if (errors.length > 0) throw toCaseError(file, errors)
  return content
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new CaseError(`${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function nameCase(content: unknown, index: string): string {
  const entry: unknown = Array.isArray(content) ? content[Number(index)] : undefined
  if (isJsonObject(entry) && typeof entry['id'] === 'string') return entry['id']
  return index === '' ? 'the file' : `case ${Number(index) + 1}`
}

function toCaseError(file: string, errors: readonly string[]): CaseError {
  return new CaseError(`${file} is not a valid case file:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
}

/** What the schema cannot check and no report would say. */
function findContradictions({ sources, history = [], expect, injection }: EvaluationCase): string[] {
  const named = [
    ...[...expect.deliveries, ...history.flatMap(({ sent = [] }) => sent)].map(({ source }) => source),
    ...(injection?.sources ?? []),
  ]
  const unknown = named.filter((name) => !sources.some((source) => source.name === name))
  return [
    ...unknown.map((name) => `there is no source ${name}`),
    ...expect.deliveries.flatMap(({ payload }, index) =>
      findBadMatchers(payload).map((message) => `expect.deliveries.${index}: ${message}`),
    ),
  ]
}

export function toText(text: string | readonly string[]): string {
  return typeof text === 'string' ? text : text.join('\n')
}
