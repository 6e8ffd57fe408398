import { Dialog } from '../components/dialog.tsx'
import type { PageEntry } from './app-layout.tsx'

const KEYS = [
  ['⌘K or Ctrl-K', 'Find a page, workflow, webhook source, id or request id'],
  ['⌘S or Ctrl-S', 'Save the form'],
  ['⌘Enter or Ctrl-Enter', 'Start the workflow (Try it)'],
  ['j, k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['/', 'Go to the search of a list'],
  ['?', 'Show this help'],
] as const

export function ShortcutsHelp({ pages, onClose }: { pages: readonly PageEntry[]; onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="shortcuts">
        {[...KEYS, ...pages.map((page) => [`g ${page.shortcut}`, page.label] as const)].map(([keys, text]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p className="muted">Single keys can be switched off under Account.</p>
    </Dialog>
  )
}
