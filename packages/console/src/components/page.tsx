import { Link, type LinkProps } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'

let isFirstPage = true

interface PageProps {
  /** The heading, and the title of the tab. */
  title: string
  /** The page above this one, such as the list. */
  back?: readonly [label: string, link: LinkProps]
  /** Shown beside the title: a badge or an id. */
  meta?: ReactNode
  actions?: ReactNode
  /** One sentence below the title. */
  intro?: ReactNode
  children: ReactNode
}

/** A page with its heading. */
export function Page({ title, back, meta, actions, intro, children }: PageProps) {
  return (
    <div className="page">
      <header className="page-header">
        {back ? (
          <Link {...back[1]} className="back">
            {back[0]}
          </Link>
        ) : null}
        <div className="page-title">
          <Heading title={title} />
          {meta}
          {actions ? <div className="actions">{actions}</div> : null}
        </div>
        {intro ? <p className="muted">{intro}</p> : null}
      </header>
      {children}
    </div>
  )
}

/** The heading of a page, and the title of the tab. Takes the focus after a navigation, so that screen readers read it. */
export function Heading({ title }: { title: string }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (!isFirstPage) heading.current?.focus({ preventScroll: true })
    isFirstPage = false
  }, [])
  useTitle(title)
  return (
    <h1 ref={heading} tabIndex={-1}>
      {title}
    </h1>
  )
}

/** Names the tab of the browser. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title} – Workflow Automation Service`
  }, [title])
}

interface SectionProps {
  title: string
  intro?: ReactNode
  actions?: ReactNode
  /** For forms: lines of text that are easy to read. */
  isNarrow?: boolean
  children?: ReactNode
}

/** A part of a page with its own heading. */
export function Section({ title, intro, actions, isNarrow, children }: SectionProps) {
  return (
    <section className="section">
      <header>
        <h2>{title}</h2>
        {actions ? <div className="actions">{actions}</div> : null}
        {intro ? <p className="muted">{intro}</p> : null}
      </header>
      {isNarrow ? <div className="narrow stack">{children}</div> : children}
    </section>
  )
}
