import type { JsonSchema } from '@workflow-service/contract'
import { type DateKind, dateKindOf } from './convert-date.ts'
import { isEmail, type TextKind } from './convert-value.ts'
import { listProperties, listTypes } from './example-schema.ts'

/** The plain values that the example has for a schema. */
export interface Samples {
  readonly texts: readonly string[]
  readonly numbers: readonly number[]
}

/** Collects the values of the example by the schema of their field. */
export function collectSamples(schema: JsonSchema, example: unknown): ReadonlyMap<JsonSchema, Samples> {
  const samples = new Map<JsonSchema, Samples>()
  visit(schema, [example])
  return samples

  function visit(current: JsonSchema, values: readonly unknown[]): void {
    const texts = values.filter((value) => typeof value === 'string')
    const numbers = values.filter((value) => typeof value === 'number')
    if (texts.length + numbers.length > 0) samples.set(current, { texts, numbers })
    for (const type of listTypes(current)) {
      if (type['type'] === 'array') {
        visit((type['items'] as JsonSchema | undefined) ?? {}, values.filter((value) => Array.isArray(value)).flat())
      } else if (type['type'] === 'object') {
        const objects = values.filter((value) => typeof value === 'object' && value !== null && !Array.isArray(value))
        for (const [name, field] of listProperties(type)) {
          visit(
            field,
            objects.flatMap((object) =>
              Object.hasOwn(object as object, name) ? [(object as Record<string, unknown>)[name]] : [],
            ),
          )
        }
      }
    }
  }
}

/** What the texts of the example show: a date or an email address, if all of them do. */
export function textKindOf(samples: Samples | undefined): TextKind {
  const texts = samples?.texts ?? []
  const kinds = new Set<DateKind | undefined>(texts.map(dateKindOf))
  const [date] = kinds
  return {
    date: kinds.size === 1 ? date : undefined,
    hasSeconds: texts.every((text) => /:\d{2}:/.test(text)),
    isEmail: texts.length > 0 && texts.every(isEmail),
    isPointDate: texts.length > 0 && texts.every((text) => /^[0-3]\d\.[01]\d\.\d{4}$/.test(text)),
  }
}
