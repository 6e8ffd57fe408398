import type { ReactNode } from 'react'
import { useTitle } from '../../components/page.tsx'

/** A page without navigation: for people who are not signed in. */
export function EntryPage({ title, intro, children }: { title: string; intro?: ReactNode; children: ReactNode }) {
  useTitle(title)
  return (
    <main className="entry-page">
      <img src="/favicon.svg" alt="" width="32" height="32" />
      <h1>{title}</h1>
      {intro ? <p className="muted">{intro}</p> : null}
      {children}
    </main>
  )
}
