import * as fc from 'fast-check'

/**
 * Any code point of Unicode except surrogates, as a unit of `fc.string`. Its own unit for them, `binary`, makes a table
 * of a million entries, which takes 0.7 s of processor time and 180 MB in each worker.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff })
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))
