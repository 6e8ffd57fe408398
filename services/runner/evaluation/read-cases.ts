import { globSync, readFileSync } from 'node:fs'
import { compile, findExampleErrors, findPayloadMismatches, isJsonObject } from '@workflow-service/contract'
import { CaseFile, type EvaluationCase } from './case-schema.ts'
import { findBadMatchers, toSamplePayload } from './matchers.ts'

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

/** What the schema cannot check: names of sources, examples, matchers, and that the expected payloads may be sent. */
function findContradictions({ sources, history = [], expect, injection, context, workflow }: EvaluationCase): string[] {
  const errors: string[] = []
  const byName = new Map(sources.map((source) => [source.name, source]))
  if (byName.size < sources.length) errors.push('sources: two have the same name')
  for (const { name, example } of sources) {
    const [error] = findExampleErrors(example, 'example')
    if (error) errors.push(`source ${name}, ${error.field}: ${error.message}`)
  }
  if (toText(context) === '' && toText(workflow.input_message ?? '') === '' && expect.deliveries.length > 0) {
    errors.push('context: is empty, as is the input message, so there is nothing to send')
  }
  const named = [
    ...expect.deliveries.map(({ source }) => source),
    ...history.flatMap(({ sent = [] }) => sent.map(({ source }) => source)),
    ...(injection?.sources ?? []),
  ]
  for (const name of named) if (!byName.has(name)) errors.push(`there is no source ${name}`)
  if ((expect.status === 'failed') !== (expect.error !== undefined)) {
    errors.push('expect.error: is required if the status is failed, and only then')
  }
  for (const [index, { source, payload }] of expect.deliveries.entries()) {
    const example = byName.get(source)?.example
    if (!example) continue
    const where = `expect.deliveries.${index}`
    const bad = findBadMatchers(payload)
    if (bad.length > 0) errors.push(...bad.map((message) => `${where}: ${message}`))
    else {
      const mismatches = findPayloadMismatches(example, toSamplePayload(payload, example))
      errors.push(...mismatches.map(({ field, message }) => `${where}.payload.${field}: ${message}`))
    }
  }
  return errors
}

export function toText(text: string | readonly string[]): string {
  return typeof text === 'string' ? text : text.join('\n')
}
