import { Combobox as Base } from '@base-ui/react/combobox'
import { Field } from './fields.tsx'
import { Icon } from './icons.tsx'

export interface Option {
  value: string
  label: string
  detail?: string
}

interface ComboboxProps {
  label: string
  options: readonly Option[]
  value: string | null
  onValue: (value: string | null) => void
  placeholder?: string
  hint?: string
  error?: string | undefined
  isLabelHidden?: boolean
  /** Called with what is typed, when the options come from the server; they are then not filtered here. */
  onSearch?: (text: string) => void
}

/** A field that finds one of many options while typing. */
export function Combobox({ label, options, value, onValue, placeholder, onSearch, ...field }: ComboboxProps) {
  const selected = options.find((option) => option.value === value) ?? null
  return (
    <Field label={label} {...field}>
      {(control) => (
        <Base.Root
          items={options}
          value={selected}
          onValueChange={(option) => onValue(option?.value ?? null)}
          itemToStringLabel={(option: Option) => option.label}
          isItemEqualToValue={(one: Option, other: Option) => one.value === other.value}
          {...(onSearch ? { filter: null, onInputValueChange: onSearch } : {})}
        >
          <div className="combobox">
            <Base.Input {...control} className="input" placeholder={placeholder} />
            {selected ? (
              <Base.Clear className="button ghost icon-only" aria-label={`Clear ${label}`}>
                <Icon name="close" />
              </Base.Clear>
            ) : null}
          </div>
          <Base.Portal>
            <Base.Positioner className="menu-positioner" sideOffset={4}>
              <Base.Popup className="menu">
                <Base.Empty className="menu-empty">Nothing found.</Base.Empty>
                <Base.List>
                  {(option: Option) => (
                    <Base.Item key={option.value} value={option} className="menu-item">
                      <span>{option.label}</span>
                      {option.detail ? <span className="muted">{option.detail}</span> : null}
                    </Base.Item>
                  )}
                </Base.List>
              </Base.Popup>
            </Base.Positioner>
          </Base.Portal>
        </Base.Root>
      )}
    </Field>
  )
}
