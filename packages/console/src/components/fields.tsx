import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
  useState,
} from 'react'
import { tryIt } from './toast.ts'

interface FieldProps {
  label: string
  /** Shown below the control until there is an error. */
  hint?: ReactNode
  error?: string | undefined
  /** Beside the label: a counter or a button. */
  aside?: ReactNode
  isLabelHidden?: boolean
}

/** What a control needs to belong to its label, hint and error, and the properties that are its own. */
type ControlProps<Props> = Omit<Props, keyof FieldProps> & {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

interface FieldChildren<Props> {
  children: (control: ControlProps<Props>) => ReactNode
}

/** A label, a control, and its hint or error. */
export function Field<Props extends FieldProps>(props: Props & FieldChildren<Props>) {
  const { label, hint, error, aside, isLabelHidden, children, ...rest } = props
  const id = useId()
  const describedBy = error || hint ? `${id}-text` : undefined
  const aria = { id, 'aria-describedby': describedBy, 'aria-invalid': error ? true : undefined } as const
  return (
    <div className="field">
      <div className={isLabelHidden ? 'visually-hidden' : 'field-label'}>
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {children({ ...rest, ...aria } as unknown as ControlProps<Props>)}
      <FieldText id={describedBy} hint={hint} error={error} />
    </div>
  )
}

/** The hint or the error of a field. */
export function FieldText({ id, hint, error }: Pick<FieldProps, 'hint' | 'error'> & { id?: string | undefined }) {
  if (!error && !hint) return null
  return (
    <p id={id} className={error ? 'field-error' : 'field-hint'}>
      {error || hint}
    </p>
  )
}

interface Bound<Value> {
  value: Value
  onValue: (value: Value) => unknown
}

type TextFieldProps = FieldProps &
  Bound<string> &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'value' | 'onChange' | 'children'> & { ref?: Ref<HTMLInputElement> }

export function TextField(props: TextFieldProps) {
  return (
    <Field<TextFieldProps> {...props}>
      {({ onValue, className = '', ...control }) => (
        <input
          type="text"
          autoComplete="off"
          {...control}
          className={`input ${className}`}
          onChange={(event) => onValue(event.target.value)}
        />
      )}
    </Field>
  )
}

type TextAreaFieldProps = FieldProps &
  Bound<string> &
  Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'value' | 'onChange' | 'children'> & {
    ref?: Ref<HTMLTextAreaElement>
    /** For code and JSON. */
    isCode?: boolean
  }

/** A text of several lines that grows with its content. */
export function TextAreaField(props: TextAreaFieldProps) {
  return (
    <Field<TextAreaFieldProps> {...props}>
      {({ onValue, isCode, rows = 3, ...control }) => (
        <textarea
          rows={rows}
          // A field that grows with its content ignores its rows.
          style={{ minHeight: `calc(${rows} * 1.5em + 12px)` }}
          spellCheck={!isCode}
          {...control}
          className={isCode ? 'input code' : 'input'}
          onChange={(event) => onValue(event.target.value)}
        />
      )}
    </Field>
  )
}

/** Values and their words, in the order of the object. */
export type Choices<Value extends string = string> = { readonly [Key in Value]?: string }

export function entriesOf<Value extends string>(choices: Choices<Value>): [Value, string][] {
  return Object.entries(choices) as [Value, string][]
}

type SelectFieldProps<Value extends string> = FieldProps &
  Bound<Value> &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'value' | 'onChange' | 'children'> & {
    options: Choices<Value>
    /** The first choice, without a value. */
    none?: string
  }

export function SelectField<Value extends string>(props: SelectFieldProps<Value>) {
  return (
    <Field<SelectFieldProps<Value>> {...props}>
      {({ onValue, options, none, ...control }) => (
        <select {...control} className="input" onChange={(event) => onValue(event.target.value as Value)}>
          {none ? <option value="">{none}</option> : null}
          {entriesOf(options).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

interface CheckProps extends Bound<boolean>, Pick<FieldProps, 'hint' | 'error'> {
  label: ReactNode
  disabled?: boolean
  isSwitch?: boolean
}

/** A choice that is saved with its form. */
export function Checkbox({ label, hint, error, value, onValue, disabled, isSwitch }: CheckProps) {
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
      <FieldText id={`${id}-text`} hint={hint} error={error} />
    </div>
  )
}

/** A choice that takes effect at once, and shows it while a promise of `onValue` is pending. */
export function Switch({ value, onValue, ...props }: CheckProps) {
  const [wanted, setWanted] = useState<boolean>()
  async function change(isOn: boolean) {
    setWanted(isOn)
    await tryIt(() => onValue(isOn))
    setWanted(undefined)
  }
  return <Checkbox {...props} isSwitch value={wanted ?? value} onValue={(isOn) => void change(isOn)} />
}

/** One of a few choices, all of them visible. */
export function RadioGroup<Value extends string>(
  props: Bound<Value> & {
    label: string
    options: Choices<Value>
    hints?: Choices<Value>
    error?: string | undefined
  },
) {
  const id = useId()
  return (
    <fieldset className="radios" aria-describedby={props.error ? `${id}-error` : undefined}>
      <legend>{props.label}</legend>
      {entriesOf(props.options).map(([value, label]) => (
        <label key={value} className="radio">
          <input type="radio" name={id} checked={props.value === value} onChange={() => props.onValue(value)} />
          <span>{label}</span>
          <FieldText hint={props.hints?.[value]} />
        </label>
      ))}
      <FieldText id={`${id}-error`} error={props.error} />
    </fieldset>
  )
}
