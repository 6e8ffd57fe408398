import { unmarkUntrusted } from '@workflow-service/contract/unmark-untrusted'
import { type ReactNode, useState } from 'react'
import { invalid } from '../api/index.ts'
import { Button, type ButtonProps } from './button.tsx'
import { parseJson } from './parse-json.ts'
import { beginningOf } from './text.ts'
import { announce, toast } from './toast.ts'

const SHOWN_MS = 1_500

function useCopy(text: string) {
  const [isCopied, setIsCopied] = useState(false)
  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      announce('Copied.')
      setIsCopied(true)
      setTimeout(() => setIsCopied(false), SHOWN_MS)
    } catch {
      toast('The browser does not let this page copy. Select the text and copy it yourself.', 'bad')
    }
  }
  return { isCopied, copy: () => void copy(), icon: isCopied ? 'check' : 'copy' } as const
}

/** The end of an id, which differs between UUIDv7 of the same time. */
export const shortId = (id: string) => `…${id.slice(-8)}`

/** An id that a click copies. */
export function CopyId({ id, isShort = false, label = 'id' }: { id: string; isShort?: boolean; label?: string }) {
  const { isCopied, copy } = useCopy(id)
  return (
    <button type="button" className="copy-id" onClick={copy} title={`Copy ${id}`}>
      <span className="visually-hidden">Copy {label} </span>
      {isCopied ? 'Copied' : isShort ? shortId(id) : id}
    </button>
  )
}

/** Copies a text, which `what` names. */
export function CopyButton({ text, what, ...look }: { text: string; what: string } & Partial<ButtonProps>) {
  const { isCopied, copy, icon } = useCopy(text)
  const label = isCopied ? 'Copied' : 'Copy'
  return (
    <Button aria-label={`Copy ${what}`} title={`Copy ${what}`} {...look} label={label} icon={icon} onClick={copy} />
  )
}

/** A text to copy as a whole, such as a curl line. */
export function CopyBox({ text, label, isJson }: { text: string; label: string; isJson?: boolean }) {
  return (
    <div className="copy-box">
      {/* Scrollable text needs the focus to be scrolled with the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {isJson ? <JsonText text={text} /> : text}
      </pre>
      <CopyButton text={text} what={label} {...(isJson ? { isIconOnly: true, variant: 'ghost' } : {})} />
    </div>
  )
}

/** Names and values; those without a value are left out. */
export function KeyValueList({ items }: { items: Record<string, ReactNode> }) {
  const shown = Object.entries(items).filter(([, value]) => value !== undefined && value !== null && value !== false)
  if (shown.length === 0) return null
  return (
    <dl className="key-values">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A value as indented JSON, to read and copy. */
export const JsonView = ({ value, label }: { value: unknown; label: string }) => (
  <CopyBox text={JSON.stringify(value, null, 2) ?? ''} label={label} isJson />
)

/** A name, a text, or another value. */
const JSON_TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g
/** Larger ones are not colored: each token is an element. */
const COLORED_LENGTH = 20_000

/** Indented JSON with its names, texts and other values in colors. */
function JsonText({ text }: { text: string }) {
  if (text.length > COLORED_LENGTH) return text
  const parts: ReactNode[] = []
  let end = 0
  for (const match of text.matchAll(JSON_TOKENS)) {
    const [token, quoted, colon] = match
    parts.push(text.slice(end, match.index))
    const [kind, shown] = quoted === undefined ? ['value', token] : [colon === undefined ? 'text' : 'name', quoted]
    parts.push(
      <span key={match.index} className={`json-${kind}`}>
        {shown}
      </span>,
    )
    end = match.index + shown.length
  }
  return [...parts, text.slice(end)]
}

/** An answer of an endpoint: JSON is formatted. */
export function AnswerText({ text }: { text: string }) {
  const value = /^\s*[[{]/.test(text) ? parseJson(text).value : undefined
  return value === undefined ? <LongText text={text} /> : <JsonView label="answer" value={value} />
}

const LONG = 1_200

/** A text as a person reads it: without the tags for models; a long one is folded. */
export function LongText({ text: marked }: { text: string }) {
  const text = unmarkUntrusted(marked)
  if (text === '') return <p className="muted">(no text)</p>
  const block = (
    <pre className="text" dir="auto">
      {text}
    </pre>
  )
  if (text.length <= LONG) return block
  return (
    <details>
      <summary>
        {beginningOf(text, 120)}… ({Array.from(text).length.toLocaleString('en')} characters)
      </summary>
      {block}
    </details>
  )
}

/** Millionths of a currency, such as `1.50 EUR`. */
export function moneyText(micros: number, currency: string | null): string {
  const amount = (micros / 1_000_000).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })
  return currency === null ? amount : `${amount} ${currency}`
}

const MAX_AMOUNT = 1_000_000_000

/** An amount of the currency that a person typed into a field, as millionths; null: none. */
export function toMicros(field: string, text: string): number | null {
  const amount = text.trim().replace(',', '.')
  if (amount === '') return null
  // A thousand and more for some people, and little more than one for others.
  if (/^\d+,\d{3}$/.test(text.trim())) throw invalid(field, 'Write it without a comma, such as 1234 or 1.234.')
  if (!/^\d+(\.\d{1,6})?$/.test(amount)) throw invalid(field, 'Write an amount such as 1.50, or nothing for no limit.')
  // The server would name its limit in millionths.
  if (Number(amount) > MAX_AMOUNT) throw invalid(field, `Write at most ${MAX_AMOUNT.toLocaleString('en')}.`)
  return Math.round(Number(amount) * 1_000_000)
}

export const fromMicros = (micros: number | null) => (micros === null ? '' : String(micros / 1_000_000))
