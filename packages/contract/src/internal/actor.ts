import { EMAIL_MAX_LENGTH } from '../limits.ts'
import { compile } from '../schema/ajv.ts'
import { Closed, Nullable, type Static } from '../schema/objects.ts'
import { parseJson } from '../schema/parse-json.ts'
import { Text, Uuid } from '../schema/values.ts'

/** Who makes a change through the internal API, for the audit log (contract README, "Internal API"). */
export const Actor = Closed('Actor', 'Who makes a change.', {
  user_id: Nullable(Uuid('The user of the organization; null: the operator, with `wf`.')),
  name: Text(EMAIL_MAX_LENGTH, "The person's name."),
  address: Nullable(Text(100, "The person's IP address.")),
})
export type Actor = Static<typeof Actor>

const isActor = compile(Actor)

/** Writes the value of `X-Actor`: JSON whose other characters than ASCII are escaped. */
export function formatActor(actor: Actor): string {
  return JSON.stringify(actor).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Reads the value of `X-Actor`; undefined if it is not valid. */
export function parseActor(text: string): Actor | undefined {
  const actor = parseJson(text)
  return isActor(actor) ? actor : undefined
}
