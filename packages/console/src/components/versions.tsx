interface VersionsProps {
  /** What the two values are: `Yours` and `Saved now`. */
  names: readonly [string, string]
  changes: readonly { field: string; values: readonly [unknown, unknown] }[]
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return '–'
  return typeof value === 'string' ? value || '(empty)' : JSON.stringify(value, null, 2)
}

/** Shows two values of each changed field side by side. */
export function Versions({ names, changes }: VersionsProps) {
  return changes.map(({ field, values }) => (
    <div key={field} className="versions">
      <strong>{field}</strong>
      {names.map((name, index) => (
        <div key={name}>
          <p className="muted">{name}</p>
          <pre>{valueText(values[index])}</pre>
        </div>
      ))}
    </div>
  ))
}
