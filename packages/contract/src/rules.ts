import { type Static, Type } from 'typebox'
import { RULE_EXPRESSION_MAX_LENGTH, RULES_MAX_DELIVERIES, WEBHOOK_SOURCE_NAME_MAX_LENGTH } from './limits.ts'
import { type ManifestFieldError, toManifestFieldError } from './manifest.ts'
import { compile } from './schema/ajv.ts'
import { toFieldErrors } from './schema/field-errors.ts'
import { CLOSED, JsonObject } from './schema/types.ts'

/** The name of the workflow file that the built-in agent follows instead of the description (contract README, "Rules"). */
export const RULES_FILE_NAME = 'rules.yaml'

/** Whether the file is the workflow's rules: it has that name and is in no folder. */
export function isRulesFile({
  name,
  path = [],
}: {
  readonly name: string
  readonly path?: readonly string[]
}): boolean {
  return name === RULES_FILE_NAME && path.length === 0
}

/** A delivery of the rules: which webhook source, when, and with what. */
export const RuleDelivery = Type.Object(
  {
    to: Type.String({
      minLength: 1,
      maxLength: WEBHOOK_SOURCE_NAME_MAX_LENGTH,
      description: 'Name of a webhook source; case and the amount of white space do not matter.',
    }),
    when: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: RULE_EXPRESSION_MAX_LENGTH,
        description: 'CEL expression that is true or false. Default: always.',
      }),
    ),
    payload: Type.Optional(
      JsonObject('Values by field. Each text is a CEL expression. Fields that are not given are filled by name.'),
    ),
  },
  { ...CLOSED, title: 'RuleDelivery', description: 'A delivery of the rules.' },
)

/** The content of a `rules.yaml` (contract README, "Rules"). */
export const RulesFile = Type.Object(
  {
    deliveries: Type.Array(RuleDelivery, {
      minItems: 1,
      maxItems: RULES_MAX_DELIVERIES,
      description: 'Deliveries of a run, in this order.',
    }),
  },
  { ...CLOSED, title: 'RulesFile', description: 'Which webhook sources get a payload, when, and with what.' },
)
export type RulesFile = Static<typeof RulesFile>

/** Compiled on first use: most processes never read rules. */
let validateRules: ReturnType<typeof compile<typeof RulesFile>> | undefined

/** Lists where the value does not have the shape of rules, such as `deliveries[0].to`. Empty if it has. */
export function findRulesShapeErrors(value: unknown): (ManifestFieldError & { readonly code: string })[] {
  validateRules ??= compile(RulesFile)
  if (validateRules(value)) return []
  return toFieldErrors(validateRules.errors ?? []).map((error) => ({
    ...toManifestFieldError(error),
    code: error.code,
  }))
}
