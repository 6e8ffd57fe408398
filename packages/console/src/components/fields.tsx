import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'

interface FieldProps {
  label: string
  /** Shown below the control until there is an error. */
  hint?: ReactNode
  error?: string | undefined
  /** Beside the label: a counter or a button. */
  aside?: ReactNode
  isLabelHidden?: boolean
}

/** What a control needs to belong to its label, hint and error. */
interface ControlProps {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

/** A label, a control, and its hint or error. */
export function Field(props: FieldProps & { children: (control: ControlProps) => ReactNode }) {
  const { label, hint, error, aside, isLabelHidden, children } = props
  const id = useId()
  const describedBy = error || hint ? `${id}-text` : undefined
  return (
    <div className="field">
      <div className={isLabelHidden ? 'visually-hidden' : 'field-label'}>
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {children({ id, 'aria-describedby': describedBy, 'aria-invalid': error ? true : undefined })}
      {describedBy ? (
        <p id={describedBy} className={error ? 'field-error' : 'field-hint'}>
          {error ?? hint}
        </p>
      ) : null}
    </div>
  )
}

interface Bound<Value> {
  value: Value
  onValue: (value: Value) => void
}

type TextFieldProps = FieldProps &
  Bound<string> &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'value' | 'onChange'> & { ref?: Ref<HTMLInputElement> }

export function TextField({ label, hint, error, aside, isLabelHidden, onValue, ...rest }: TextFieldProps) {
  return (
    <Field {...{ label, hint, error, aside, isLabelHidden }}>
      {(control) => (
        <input
          type="text"
          autoComplete="off"
          {...rest}
          {...control}
          className={`input ${rest.className ?? ''}`}
          onChange={(event) => onValue(event.target.value)}
        />
      )}
    </Field>
  )
}

type TextAreaFieldProps = FieldProps &
  Bound<string> &
  Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'value' | 'onChange'> & {
    ref?: Ref<HTMLTextAreaElement>
    /** For code and JSON. */
    isCode?: boolean
  }

/** A text of several lines that grows with its content. */
export function TextAreaField(props: TextAreaFieldProps) {
  const { label, hint, error, aside, isLabelHidden, onValue, isCode, rows = 3, ...rest } = props
  return (
    <Field {...{ label, hint, error, aside, isLabelHidden }}>
      {(control) => (
        <textarea
          rows={rows}
          // A field that grows with its content ignores its rows.
          style={{ minHeight: `calc(${rows} * 1.5em + 12px)` }}
          spellCheck={!isCode}
          {...rest}
          {...control}
          className={isCode ? 'input code' : 'input'}
          onChange={(event) => onValue(event.target.value)}
        />
      )}
    </Field>
  )
}

type SelectFieldProps<Value extends string> = FieldProps &
  Bound<Value> &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'value' | 'onChange'> & {
    options: readonly (readonly [value: Value, label: string])[]
  }

export function SelectField<Value extends string>(props: SelectFieldProps<Value>) {
  const { label, hint, error, aside, isLabelHidden, onValue, options, ...rest } = props
  return (
    <Field {...{ label, hint, error, aside, isLabelHidden }}>
      {(control) => (
        <select {...rest} {...control} className="input" onChange={(event) => onValue(event.target.value as Value)}>
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

interface CheckProps extends Bound<boolean> {
  label: ReactNode
  hint?: ReactNode
  error?: string | undefined
  disabled?: boolean
}

function Check({ label, hint, error, value, onValue, disabled, isSwitch }: CheckProps & { isSwitch?: boolean }) {
  const id = useId()
  return (
    <div className="check">
      <input
        id={id}
        type="checkbox"
        role={isSwitch ? 'switch' : undefined}
        className={isSwitch ? 'switch' : undefined}
        checked={value}
        disabled={disabled}
        aria-describedby={error || hint ? `${id}-text` : undefined}
        aria-invalid={error ? true : undefined}
        onChange={(event) => onValue(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {error || hint ? (
        <p id={`${id}-text`} className={error ? 'field-error' : 'field-hint'}>
          {error ?? hint}
        </p>
      ) : null}
    </div>
  )
}

/** A choice that is saved with its form. */
export function Checkbox(props: CheckProps) {
  return <Check {...props} />
}

/** A choice that takes effect at once. */
export function Switch(props: CheckProps) {
  return <Check {...props} isSwitch />
}

/** One of a few choices, all of them visible. */
export function RadioGroup<Value extends string>(props: {
  label: string
  value: Value
  onValue: (value: Value) => void
  options: readonly (readonly [value: Value, label: string, hint?: string])[]
  error?: string | undefined
}) {
  const id = useId()
  return (
    <fieldset className="radios" aria-describedby={props.error ? `${id}-error` : undefined}>
      <legend>{props.label}</legend>
      {props.options.map(([value, label, hint]) => (
        <label key={value} className="radio">
          <input type="radio" name={id} checked={props.value === value} onChange={() => props.onValue(value)} />
          <span>{label}</span>
          {hint ? <span className="field-hint">{hint}</span> : null}
        </label>
      ))}
      {props.error ? (
        <p id={`${id}-error`} className="field-error">
          {props.error}
        </p>
      ) : null}
    </fieldset>
  )
}
