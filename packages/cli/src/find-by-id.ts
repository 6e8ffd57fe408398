import { UUID_PATTERN } from '@workflow-service/contract'
import { findIdsByPrefix } from '@workflow-service/database'
import { InvalidArgumentError } from 'commander'
import type { CliContext } from './cli-context.ts'
import { CliError } from './cli-error.ts'

const MAX_LISTED = 10
/** The beginning of an id: 8 digits or more, with the "…" that a narrow table ends it with. */
const ID_PREFIX = /^[0-9a-f]{8}(?:-[0-9a-f]{0,4}){0,3}(?:(?<=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})-[0-9a-f]{0,12})?…?$/i

/** Parses an id or its beginning, of at least 8 digits. @throws InvalidArgumentError */
export function parseIdPrefix(text: string): string {
  if (!ID_PREFIX.test(text)) {
    throw new InvalidArgumentError(
      'It must be an id such as 01890a5d-ac96-774b-bcce-b302099a8057, or its beginning of at least 8 digits.',
    )
  }
  return text.replace('…', '').toLowerCase()
}

/** Returns the id of the run or session that begins with this prefix. A whole id is not looked up. @throws CliError */
export async function findId(ctx: CliContext, what: 'run' | 'session', prefix: string): Promise<string> {
  if (UUID_PATTERN.test(prefix)) return prefix
  const table = what === 'run' ? 'starts' : 'sessions'
  const [only, ...others] = await findIdsByPrefix(ctx.database(), table, prefix, MAX_LISTED + 1)
  if (only === undefined)
    throw new CliError(`No ${what} has an id that begins with ${prefix}. List them with wf ${what}s list.`)
  if (others.length === 0) return only
  const lines = [only, ...others].slice(0, MAX_LISTED).map((id) => `  ${id}`)
  if (others.length >= MAX_LISTED) lines.push('  …')
  throw new CliError(`Several ${what}s have an id that begins with ${prefix}:\n${lines.join('\n')}`)
}
