import { useState } from 'react'
import { announce } from './announce.ts'
import { Button, IconButton } from './button.tsx'

const SHOWN_MS = 1_500

function useCopy(text: string) {
  const [isCopied, setIsCopied] = useState(false)
  async function copy() {
    await navigator.clipboard.writeText(text)
    announce('Copied.')
    setIsCopied(true)
    setTimeout(() => setIsCopied(false), SHOWN_MS)
  }
  return { isCopied, copy: () => void copy() }
}

/** An id that a click copies; `isShort` shows its end, which differs between UUIDv7 of the same time. */
export function CopyId({ id, isShort = true, label = 'id' }: { id: string; isShort?: boolean; label?: string }) {
  const { isCopied, copy } = useCopy(id)
  return (
    <button type="button" className="copy-id" onClick={copy} title={`Copy ${id}`}>
      <span className="visually-hidden">Copy {label} </span>
      {isCopied ? 'Copied' : isShort && id.length > 12 ? `…${id.slice(-8)}` : id}
    </button>
  )
}

/** A text to copy as a whole, such as a curl line. */
export function CopyBox({ text, label }: { text: string; label: string }) {
  const { isCopied, copy } = useCopy(text)
  return (
    <div className="copy-box">
      {/* Scrollable text needs the focus to be scrolled with the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <Button icon={isCopied ? 'check' : 'copy'} onClick={copy} aria-label={`Copy ${label}`}>
        {isCopied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  )
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const { isCopied, copy } = useCopy(text)
  return <IconButton icon={isCopied ? 'check' : 'copy'} label={`Copy ${label}`} onClick={copy} />
}
