import type { ReactNode } from 'react'

/** Links to the parts of a page: children are the router's `Link`s, of which the current one is marked. */
export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav className="tabs" aria-label={label}>
      {children}
    </nav>
  )
}
