import { normalizeName } from '../builtin/normalize-name.ts'
import { type ContextObject, type ContextValue, isContextObject, NumberText } from '../builtin/context-value.ts'

/** Finds names in any spelling: `order_id`, `orderId` and `Order ID` are the same. The first of several has the name. */
class FieldMap extends Map<string, unknown> {
  readonly #byName = new Map<string, unknown>()

  constructor(entries: Iterable<readonly [string, unknown]>) {
    super()
    for (const [name, value] of entries) {
      const key = normalizeName(name)
      if (!this.#byName.has(key)) this.#byName.set(key, value)
      this.set(name, value)
    }
  }

  override get(name: string): unknown {
    return this.has(name) ? super.get(name) : this.#byName.get(normalizeName(name))
  }
}

/** The values that the context names, for the expressions of rules. */
export function toRuleFields(context: ContextObject): ReadonlyMap<string, unknown> {
  return new FieldMap(Object.entries(context).map(([name, value]) => [name, toRuleValue(value)]))
}

function toRuleValue(value: ContextValue): unknown {
  if (value instanceof NumberText) {
    const number = Number(value.source)
    // As text, so that no digit is lost; number(…) refuses it.
    return Number.isSafeInteger(number) || !Number.isInteger(number) ? number : value.source
  }
  if (Array.isArray(value)) return value.map(toRuleValue)
  return isContextObject(value) ? toRuleFields(value) : value
}
