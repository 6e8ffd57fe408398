import { CopyBox } from './copy.tsx'

/** Strings, keys, numbers and words of JSON. */
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g

/** A value as indented JSON, to read and copy. */
export function JsonView({ value, label }: { value: unknown; label: string }) {
  const text = JSON.stringify(value, null, 2) ?? ''
  const parts = []
  let end = 0
  for (const { index, 0: match, 1: quoted, 2: colon = '' } of text.matchAll(TOKENS)) {
    parts.push(
      text.slice(end, index),
      <span key={index} className={`json-${colon ? 'key' : quoted ? 'string' : 'other'}`}>
        {quoted ?? match}
      </span>,
      colon,
    )
    end = index + match.length
  }
  return (
    <CopyBox text={text} label={label} isIconOnly>
      {[...parts, text.slice(end)]}
    </CopyBox>
  )
}
