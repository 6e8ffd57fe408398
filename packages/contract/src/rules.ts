import type { FieldError } from './errors.ts'
import { RULE_EXPRESSION_MAX_LENGTH, RULES_MAX_DELIVERIES, WEBHOOK_SOURCE_NAME_MAX_LENGTH } from './limits.ts'
import { type ManifestFieldError, toManifestFieldError } from './manifest.ts'
import { compile } from './schema/ajv.ts'
import { toFieldErrors } from './schema/field-errors.ts'
import { Closed, JsonObject, List, Optional, type Static } from './schema/objects.ts'
import { Str } from './schema/values.ts'

/**
 * The name of the workflow file that the built-in agent follows instead of the description (contract README, "Rules").
 */
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

/**
 * Returns what is wrong with the name of a file that looks like the workflow's rules and is not followed: `rules.yml`,
 * `Rules.yaml`, or a `rules.yaml` in a folder. Its conditions would silently not be enforced (contract README,
 * "Rules"). Undefined for the rules themselves and for files of other names.
 */
export function findRulesNameError(file: {
  readonly name: string
  readonly path?: readonly string[]
}): FieldError | undefined {
  const { name, path = [] } = file
  if (isRulesFile(file) || !/^\s*rules\.ya?ml\s*$/iu.test(name)) return undefined
  const given = [...path, name].join('/')
  return {
    field: name === RULES_FILE_NAME ? 'path' : 'name',
    code: 'value_error',
    message: `is that of no rules: the agent follows only ${JSON.stringify(RULES_FILE_NAME)} in no folder, not ${JSON.stringify(given)}. Name it so, or choose a name that does not look like rules`,
  }
}

/** A delivery of the rules: which webhook source, when, and with what. */
export const RuleDelivery = Closed('RuleDelivery', 'A delivery of the rules.', {
  to: Str('Name of a webhook source; case and the amount of white space do not matter.', {
    minLength: 1,
    maxLength: WEBHOOK_SOURCE_NAME_MAX_LENGTH,
  }),
  when: Optional(
    Str('CEL expression that is true or false. Default: always.', {
      minLength: 1,
      maxLength: RULE_EXPRESSION_MAX_LENGTH,
    }),
  ),
  for_each: Optional(
    Str('CEL expression that is a list: one delivery for each `item`. Default: one delivery.', {
      minLength: 1,
      maxLength: RULE_EXPRESSION_MAX_LENGTH,
    }),
  ),
  payload: Optional(
    JsonObject('Values by field. Each text is a CEL expression. Fields that are not given are filled by name.'),
  ),
})

/** The content of a `rules.yaml` (contract README, "Rules"). */
export const RulesFile = Closed('RulesFile', 'Which webhook sources get a payload, when, and with what.', {
  deliveries: List(RuleDelivery, 'Deliveries of a run, in this order.', {
    minItems: 1,
    maxItems: RULES_MAX_DELIVERIES,
  }),
})
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
