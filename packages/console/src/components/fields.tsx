import { type ChangeEvent, type ComponentProps, type ReactNode, useId, useRef, useState } from 'react'
import { Button } from './button.tsx'
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

/** What `form.field` gives a field. */
export interface Bound<Value> extends Pick<FieldProps, 'label' | 'error' | 'hint'> {
  value: Value
  onValue: (value: Value) => unknown
}

/** The properties of a field around a native control. */
type ControlProps<Tag extends 'input' | 'textarea' | 'select', Value> = FieldProps &
  Bound<Value> &
  Omit<ComponentProps<Tag>, 'value' | 'onChange' | 'children'>

/** A label, a control, and its hint or error. The control gets the properties that are its own. */
function Field<Props extends FieldProps>(props: {
  of: Props
  children: (control: Omit<Props, keyof FieldProps> & { id: string }) => ReactNode
}) {
  const { label, hint, error, aside, isLabelHidden, ...control } = props.of
  const id = useId()
  const textId = error || hint ? `${id}-text` : undefined
  const aria = { id, 'aria-describedby': textId, 'aria-invalid': error ? true : undefined }
  return (
    <div className="field">
      <div className={isLabelHidden ? 'visually-hidden' : 'field-label'}>
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {props.children({ ...control, ...aria })}
      <FieldText id={textId} hint={hint} error={error} />
    </div>
  )
}

function FieldText({ id, hint, error }: Pick<FieldProps, 'hint' | 'error'> & { id?: string | undefined }) {
  if (!error && !hint) return null
  return (
    <p id={id} className={error ? 'field-error' : 'field-hint'}>
      {error || hint}
    </p>
  )
}

export function TextField(props: ControlProps<'input', string>) {
  return (
    <Field of={props}>
      {({ onValue, className = '', ...control }) => {
        const Input = control.type === 'password' ? PasswordInput : 'input'
        return (
          <Input
            type="text"
            dir="auto"
            autoComplete="off"
            {...control}
            className={`input ${className}`}
            // A URL is often pasted with white space around it.
            onChange={({ target: { value } }: ChangeEvent<HTMLInputElement>) =>
              onValue(control.type === 'url' ? value.trim() : value)
            }
          />
        )
      }}
    </Field>
  )
}

/** An input of a password with a button that shows what was typed. */
function PasswordInput(props: ComponentProps<'input'>) {
  const [isShown, setIsShown] = useState(false)
  return (
    <div className="password">
      <input {...props} type={isShown ? 'text' : 'password'} spellCheck={false} autoCapitalize="none" />
      <Button
        label={isShown ? 'Hide' : 'Show'}
        title={isShown ? 'Hide the password' : 'Show the password'}
        className="small"
        variant="ghost"
        onClick={() => setIsShown(!isShown)}
      />
    </div>
  )
}

/** A password to choose, which the browser stores. */
export const NewPasswordField = (props: ComponentProps<typeof TextField>) => (
  <TextField
    type="password"
    autoComplete="new-password"
    hint="At least 12 characters. A few words that do not belong together are easy to remember."
    {...props}
  />
)

/** A text of several lines that grows with its content. `isCode`: code and JSON. */
export function TextAreaField(props: ControlProps<'textarea', string> & { isCode?: boolean }) {
  return (
    <Field of={props}>
      {({ onValue, isCode, rows = 3, ...control }) => (
        <textarea
          rows={rows}
          // A field that grows with its content ignores its rows.
          style={{ minHeight: `calc(${rows} * 1.5em + 12px)` }}
          spellCheck={!isCode}
          dir={isCode ? 'ltr' : 'auto'}
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

function entriesOf<Value extends string>(choices: Choices<Value>): [Value, string][] {
  return Object.entries(choices) as [Value, string][]
}

/** One of many choices. `none` is the first one, without a value. */
export function SelectField<Value extends string>(
  props: ControlProps<'select', Value> & { options: Choices<Value>; none?: string },
) {
  return (
    <Field of={props}>
      {({ onValue, options, none, ...control }) => (
        <select {...control} className="input" onChange={(event) => onValue(event.target.value as Value)}>
          {none ? <option value="">{none}</option> : null}
          {/* Without an option of its own, the browser would show another one as chosen. */}
          {control.value && !Object.hasOwn(options, control.value) ? <option>{control.value}</option> : null}
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

interface CheckProps extends Omit<Bound<boolean>, 'label'> {
  label: ReactNode
  hint?: ReactNode
  isSwitch?: boolean
  /** Without an error of its own. Default: if it has one. */
  isInvalid?: boolean
}

/** A choice that is saved with its form. */
export function Checkbox({ label, hint, error, value, onValue, isSwitch, isInvalid = Boolean(error) }: CheckProps) {
  const id = useId()
  return (
    <div className="check">
      <input
        id={id}
        type="checkbox"
        role={isSwitch ? 'switch' : undefined}
        className={isSwitch ? 'switch' : undefined}
        checked={value}
        aria-describedby={error || hint ? `${id}-text` : undefined}
        aria-invalid={isInvalid || undefined}
        onChange={(event) => onValue(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      <FieldText id={`${id}-text`} hint={hint} error={error} />
    </div>
  )
}

/** Any number of a few choices, saved with their form. */
export function CheckboxGroup<Value extends string>(
  props: Bound<Value[]> & { options: { readonly [Key in Value]?: string } },
) {
  const id = useId()
  const { label, value, onValue, options, error } = props
  const values = Object.keys(options) as Value[]
  return (
    <fieldset className="radios" aria-describedby={error ? `${id}-error` : undefined}>
      <legend>{label}</legend>
      {values.map((each, index) => (
        <Checkbox
          key={each}
          label={options[each]}
          value={value.includes(each)}
          isInvalid={index === 0 && Boolean(error)}
          onValue={(isOn) => onValue(values.filter((other) => (other === each ? isOn : value.includes(other))))}
        />
      ))}
      <FieldText id={`${id}-error`} error={error} />
    </fieldset>
  )
}

/**
 * A choice that takes effect at once, and shows it while a promise of `onValue` is pending. Of several changes in a
 * row, each waits for the one before: otherwise an earlier one might come last.
 */
export function Switch({ value, onValue, ...props }: CheckProps) {
  const [wanted, setWanted] = useState<boolean>()
  const latest = useRef(Promise.resolve())
  async function change(isOn: boolean) {
    setWanted(isOn)
    const changed = latest.current.then(() => tryIt(() => onValue(isOn)))
    latest.current = changed
    await changed
    if (latest.current === changed) setWanted(undefined)
  }
  return <Checkbox {...props} isSwitch value={wanted ?? value} onValue={(isOn) => void change(isOn)} />
}

/** One of a few choices, all of them visible, with the hint of the chosen one. */
export function RadioGroup<Value extends string>(
  props: Bound<Value> & { options: Choices<Value>; hints?: Choices<Value> },
) {
  const id = useId()
  return (
    <fieldset className="radios" aria-describedby={props.error ? `${id}-error` : undefined}>
      <legend>{props.label}</legend>
      {entriesOf(props.options).map(([value, label]) => (
        <label key={value} className="radio">
          <input type="radio" name={id} checked={props.value === value} onChange={() => props.onValue(value)} />
          <span>{label}</span>
          <FieldText hint={props.value === value && props.hints?.[value]} />
        </label>
      ))}
      <FieldText id={`${id}-error`} error={props.error} />
    </fieldset>
  )
}
