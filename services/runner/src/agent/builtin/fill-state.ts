import { PAYLOAD_MAX_VALUES } from '@workflow-service/contract'
import type { DecimalSeparator } from './convert-number.ts'
import { splitItems } from './convert-value.ts'
import { type ExampleIndex, memoize } from './example-index.ts'

/** Thrown before a payload exceeds a limit. The message completes "Nothing was sent, because …". */
export class PayloadTooLargeError extends Error {
  override name = 'PayloadTooLargeError'
  readonly limit: 'bytes' | 'values'

  constructor(limit: 'bytes' | 'values', message: string) {
    super(message)
    this.limit = limit
  }
}

/** Where the values of a payload came from. */
export interface FillReport {
  /** Fields with a value that the context names. */
  readonly named: FieldList
  /** Text fields that contain the whole context. */
  readonly wholeContext: FieldList
  /** Fields that the context does not name. */
  readonly empty: FieldList
  /** Fields left empty because their value in the context cannot be converted to the example's type, with the reason. */
  readonly unconverted: FieldList
}

/** Fields of a list that a report names; the others are only counted. */
const LISTED_FIELDS = 20
/** Characters of a field's path in a report. */
const PATH_MAX_LENGTH = 200

/** The paths of the first LISTED_FIELDS fields, and the number of all. */
export class FieldList {
  readonly listed: string[] = []
  total = 0

  add(path: readonly string[], remark?: string): void {
    this.total += 1
    if (this.total > LISTED_FIELDS) return
    const text = path.map((name) => name.slice(0, PATH_MAX_LENGTH)).join('.') || 'the context'
    const shortened = text.length > PATH_MAX_LENGTH ? `${text.slice(0, PATH_MAX_LENGTH - 1).toWellFormed()}…` : text
    this.listed.push(remark === undefined ? shortened : `${shortened} (${remark})`)
  }

  /** Forgets the fields after the first `total`. */
  shorten(total: number): void {
    this.total = total
    this.listed.length = Math.min(this.listed.length, total)
  }
}

/** A state to return to when a conversion fails. */
interface Mark {
  readonly bytes: number
  readonly totals: readonly number[]
}

/** What a payload under construction has so far: its size, its report, and what was computed for it. */
export class FillState {
  readonly report: FillReport = {
    named: new FieldList(),
    wholeContext: new FieldList(),
    empty: new FieldList(),
    unconverted: new FieldList(),
  }
  readonly example: ExampleIndex
  readonly splitItems = memoize(splitItems)
  /** The separator before decimals that the numbers of the context show. */
  decimal: DecimalSeparator | undefined
  /** The code of the only currency of the context's amounts. */
  currency: string | undefined
  /** Whether any amount of the context has a currency. */
  hasCurrency = false
  readonly #maxBytes: number
  #bytes = 0
  #values = 0

  constructor(maxBytes: number, example: ExampleIndex) {
    this.#maxBytes = maxBytes
    this.example = example
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Adds values with their bytes of JSON. @throws PayloadTooLargeError */
  addValue(bytes: number, count = 1): void {
    this.#values += count
    if (this.#values > PAYLOAD_MAX_VALUES) {
      throw new PayloadTooLargeError(
        'values',
        `the payload would have more than ${PAYLOAD_MAX_VALUES.toLocaleString('en')} values`,
      )
    }
    this.addBytes(bytes)
  }

  /** @throws PayloadTooLargeError */
  addBytes(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#maxBytes) {
      throw new PayloadTooLargeError(
        'bytes',
        `the payload would be larger than ${Math.floor(this.#maxBytes / 1024)} KiB`,
      )
    }
  }

  mark(): Mark {
    return { bytes: this.#bytes, totals: Object.values(this.report).map((list: FieldList) => list.total) }
  }

  /** Returns to the size and the report of the mark. Values remain counted: the attempt took its time. */
  rollBack({ bytes, totals }: Mark): void {
    this.#bytes = bytes
    for (const [index, list] of Object.values(this.report).entries()) (list as FieldList).shorten(totals[index] ?? 0)
  }
}
