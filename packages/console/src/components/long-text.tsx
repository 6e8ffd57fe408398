const LONG = 1_200

/** A text as it is; a long one is folded. */
export function LongText({ text }: { text: string }) {
  if (text === '') return <p className="muted">(no text)</p>
  const block = <pre className="text">{text}</pre>
  if (text.length <= LONG) return block
  return (
    <details>
      <summary>
        {text.slice(0, 120)}… ({text.length.toLocaleString('en')} characters)
      </summary>
      {block}
    </details>
  )
}
