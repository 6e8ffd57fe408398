import { readFile } from 'node:fs/promises'
import type { CliContext } from './cli-context.ts'
import { CliError } from './cli-error.ts'

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text',
}

/** Reads a text from a file, or from standard input for `-`. @throws CliError */
export async function readText(ctx: CliContext, name: string): Promise<string> {
  if (name === '-') return await ctx.readInput()
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(name))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new CliError(`${name} cannot be read: ${REASONS[code ?? ''] ?? message}.`, {}, error)
  }
}

/** Reads a JSON object from a file, or from standard input for `-`. @throws CliError */
export async function readJsonObject(ctx: CliContext, name: string): Promise<Record<string, unknown>> {
  const text = await readText(ctx, name)
  const shownName = name === '-' ? 'Standard input' : name
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new CliError(`${shownName} is not JSON: ${(error as Error).message}.`, {}, error)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(`${shownName} must have a JSON object, such as {"order_id": "A-1"}.`)
  }
  return value as Record<string, unknown>
}
