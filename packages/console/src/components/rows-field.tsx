import { Button, IconButton } from './button.tsx'
import { type Bound, type Choices, entriesOf, FieldText } from './fields.tsx'

/** Rows of short texts, such as the events of a trigger. */
export function RowsField<Name extends string>(
  props: Bound<Record<Name, string>[]> & {
    /** Names one row: `event`. */
    rowLabel: string
    columns: Choices<Name>
  },
) {
  const { label, rowLabel, columns, value, onValue, error } = props
  const names = entriesOf(columns)
  const empty = Object.fromEntries(names.map(([name]) => [name, ''])) as Record<Name, string>
  const change = (at: number, name: Name, text: string) =>
    onValue(value.map((row, index) => (index === at ? { ...row, [name]: text } : row)))
  return (
    <fieldset className="rows-field">
      <legend>{label}</legend>
      {value.map((row: Record<string, string>, index) => (
        // Rows have no identity but their place.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index}>
          {names.map(([name, text]) => (
            <input
              key={name}
              className="input"
              aria-label={`${text} of ${rowLabel} ${index + 1}`}
              placeholder={text}
              value={row[name]}
              onChange={(event) => change(index, name, event.target.value)}
            />
          ))}
          <IconButton
            icon="close"
            label={`Remove ${rowLabel} ${index + 1}`}
            onClick={() => onValue(value.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <Button label={`Add ${rowLabel}`} className="small" icon="plus" onClick={() => onValue([...value, empty])} />
      <FieldText error={error} />
    </fieldset>
  )
}
