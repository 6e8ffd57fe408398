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

/** A text to copy as a whole, such as a curl line. `children` shows it in another way. */
export function CopyBox(props: { text: string; label: string; children?: React.ReactNode; isIconOnly?: boolean }) {
  const { text, label, children = text, isIconOnly } = props
  const { isCopied, copy, icon } = useCopy(text)
  return (
    <div className="copy-box">
      {/* Scrollable text needs the focus to be scrolled with the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {children}
      </pre>
      {isIconOnly ? (
        <IconButton icon={icon} label={`Copy ${label}`} onClick={copy} />
      ) : (
        <Button label={isCopied ? 'Copied' : 'Copy'} icon={icon} onClick={copy} aria-label={`Copy ${label}`} />
      )}
    </div>
  )
}
