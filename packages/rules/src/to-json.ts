import { type CelValue, isCelList, isCelMap, isCelUint } from '@bufbuild/cel'
import { isMessage } from '@bufbuild/protobuf'
import { isReflectMessage } from '@bufbuild/protobuf/reflect'
import { timestampDate, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import type { Meter } from './meter.ts'

export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue }

/**
 * Converts the result of an expression to JSON. A timestamp becomes ISO 8601 text in UTC.
 * @throws Error for values without a lossless JSON form, such as integers beyond 2^53, bytes and durations.
 */
export function toJson(value: CelValue, meter: Meter, depth = 1): JsonValue {
  meter.charge(50)
  switch (typeof value) {
    case 'string':
      meter.chargeText(value.length)
      return value
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) throw new Error(`the result is ${value}, which JSON does not have`)
      return value === 0 ? 0 : value
    case 'bigint':
      return toSafeNumber(value)
    default:
  }
  if (value === null) return null
  if (isCelUint(value)) return toSafeNumber(value.value)
  if (isCelList(value)) {
    checkDepth(depth)
    return Array.from(value, (item) => toJson(item, meter, depth + 1))
  }
  if (isCelMap(value)) {
    checkDepth(depth)
    return Object.fromEntries(
      Array.from(value, ([name, item]) => {
        if (typeof name !== 'string') throw new Error('the result has a map with a key that is not a text')
        return [name, toJson(item, meter, depth + 1)]
      }),
    )
  }
  if (isReflectMessage(value) && isMessage(value.message, TimestampSchema)) {
    return timestampDate(value.message).toISOString()
  }
  throw new Error('the result is a duration, bytes or a type, which JSON does not have; use string(…)')
}

function checkDepth(depth: number): void {
  if (depth > PAYLOAD_MAX_DEPTH) throw new Error(`the result has more than ${PAYLOAD_MAX_DEPTH} levels`)
}

function toSafeNumber(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) {
    throw new Error(`${value} has more digits than a JSON number keeps; use string(…)`)
  }
  return number
}
