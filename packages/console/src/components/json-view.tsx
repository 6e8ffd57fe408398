import { CopyButton } from './copy.tsx'

/** Strings, keys, numbers and words of JSON. */
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g

/** A value as indented JSON, to read and copy. */
export function JsonView({ value, label }: { value: unknown; label: string }) {
  const text = JSON.stringify(value, null, 2) ?? ''
  const parts = []
  let end = 0
  for (const match of text.matchAll(TOKENS)) {
    parts.push(text.slice(end, match.index))
    const kind = match[2] ? 'key' : match[1] ? 'string' : 'other'
    parts.push(
      <span key={match.index} className={kind}>
        {match[1] ?? match[0]}
      </span>,
      match[2] ?? '',
    )
    end = match.index + match[0].length
  }
  parts.push(text.slice(end))
  return (
    <div className="copy-box json">
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {parts}
      </pre>
      <CopyButton text={text} label={label} />
    </div>
  )
}
