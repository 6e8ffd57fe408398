import { readFile } from 'node:fs/promises'
import { CliError } from './cli-error.ts'

interface Input {
  readonly readInput: () => Promise<string>
}

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text',
}

/** Reads a text from a file, or from standard input for `-`. @throws CliError */
export async function readText(ctx: Input, name: string): Promise<string> {
  return name === '-' ? await ctx.readInput() : await decodeText(name, readFile(name))
}

/** Reads bytes as UTF-8. @throws CliError */
export async function decodeText(name: string, bytes: Promise<Uint8Array>): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await bytes)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new CliError(`${name} cannot be read: ${REASONS[code ?? ''] ?? message}.`, {}, error)
  }
}

/** Reads a JSON object from a file, or from standard input for `-`. @throws CliError */
export async function readJsonObject(ctx: Input, name: string): Promise<Record<string, unknown>> {
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
