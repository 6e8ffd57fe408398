const CHARACTERS = new Intl.Segmenter()

/** The beginning of a text, of at most so many code points. Cuts no character, such as an emoji of several ones. */
export function beginningOf(text: string, maxLength: number): string {
  let [length, end] = [0, 0]
  for (const { segment, index } of CHARACTERS.segment(text.slice(0, 4 * maxLength))) {
    length += Array.from(segment).length
    if (length > maxLength) break
    end = index + segment.length
  }
  return text.slice(0, end)
}

/** A number that is counted up to a limit. */
export const countText = (count: number, limit: number): string =>
  `${Math.min(count, limit).toLocaleString('en')}${count < limit ? '' : '+'}`

/** The first character of a text, as a person counts them. */
export const firstCharacter = (text: string): string => [...CHARACTERS.segment(text.slice(0, 50))][0]?.segment ?? ''

/** Folds a text so that it equals every other writing of it: of upper or lower case, composed or decomposed. */
export const fold = (text: string): string => text.normalize('NFC').toLowerCase().toUpperCase()

/** The beginning of a text, on one line in quotation marks; empty if there is none. */
export function quote(text: string | null | undefined, maxLength = 200): string {
  const line = (text ?? '').replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  if (line === '') return ''
  const start = beginningOf(line, maxLength)
  return `“${start === line ? line : `${start}…`}”`
}
