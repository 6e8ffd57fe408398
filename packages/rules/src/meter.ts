import { type CelValue, isCelList, isCelMap } from '@bufbuild/cel'

/**
 * Work of all expressions of a `rules.yaml` in one run. A step takes about 10 ns, so that the worst expressions end
 * within 50 ms. Steps instead of a clock: the same rules and the same context give the same result on every machine.
 */
const MAX_STEPS = 2_000_000

/** Longest text that an expression may build, in UTF-16 code units: a payload is no larger. */
const TEXT_MAX_LENGTH = 256 * 1024

/** Counts the work of expressions. Unlike errors of CEL, `||`, `&&` and the macros cannot absorb what it throws. */
export class Meter {
  #steps = 0

  /** @throws Error if the work is too much. */
  charge(steps: number): void {
    this.#steps += steps
    if (this.#steps > MAX_STEPS) throw new Error('the expressions take too much work; make lists or texts shorter')
  }

  /** @throws Error if the text would be too long, or the work is too much. */
  chargeText(length: number): void {
    if (length > TEXT_MAX_LENGTH) throw new Error('a text would be longer than 256 KiB')
    this.charge(length >> 3)
  }

  /** Charges for every value in the value. Shared parts count each time: comparing walks through them each time. */
  chargeDeep(value: CelValue): void {
    this.charge(20)
    if (typeof value === 'string') this.chargeText(value.length)
    else if (isCelList(value)) for (const item of value) this.chargeDeep(item)
    else if (isCelMap(value)) for (const [, item] of value) this.chargeDeep(item)
  }
}
