import { readFile } from 'node:fs/promises'
import type { CliContext } from './cli-context.ts'
import { CliError } from './cli-error.ts'

/** Reads a JSON object from a file, or from standard input for `-`. @throws CliError */
export async function readJsonObject(ctx: CliContext, name: string): Promise<Record<string, unknown>> {
  const text = name === '-' ? await ctx.readInput() : await readText(name)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new CliError(`${nameOf(name)} is not JSON: ${(error as Error).message}.`, {}, error)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(`${nameOf(name)} must have a JSON object, such as {"order_id": "A-1"}.`)
  }
  return value as Record<string, unknown>
}

async function readText(name: string): Promise<string> {
  try {
    return await readFile(name, 'utf8')
  } catch (error) {
    throw new CliError(`${name} cannot be read (${(error as NodeJS.ErrnoException).code}).`, {}, error)
  }
}

function nameOf(name: string): string {
  return name === '-' ? 'Standard input' : name
}
