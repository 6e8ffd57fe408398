import { type CelValue, isCelList, isCelMap } from '@bufbuild/cel'

/**
 * Work of all expressions of a `rules.yaml` in one run. A step takes about 10 ns, so that the worst expressions end
 * within 50 ms. Steps instead of a clock: the same rules and the same context give the same result on every machine.
 */
const MAX_STEPS = 2_000_000

/** Longest text that an expression may build, in UTF-16 code units: a payload is no larger. */
export const TEXT_MAX_LENGTH = 256 * 1024

/** Ends the evaluation. Unlike an error of CEL, `||`, `&&` and the macros cannot absorb it. */
export class TooMuchWorkError extends Error {
  override name = 'TooMuchWorkError'
}

/** Counts the work of expressions. */
export class Meter {
  #steps = 0

  /** @throws TooMuchWorkError */
  charge(steps: number): void {
    this.#steps += steps
    if (this.#steps > MAX_STEPS)
      throw new TooMuchWorkError('the expressions take too much work; make lists or texts shorter')
  }

  /** @throws TooMuchWorkError if the text would be too long. */
  chargeText(length: number): void {
    if (length > TEXT_MAX_LENGTH) throw new TooMuchWorkError('a text would be longer than 256 KiB')
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
