import type { ReactNode } from 'react'

/** Names and values; those without a value are left out. */
export function KeyValueList({ items }: { items: Record<string, ReactNode> }) {
  const shown = Object.entries(items).filter(([, value]) => value !== undefined && value !== null && value !== false)
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
