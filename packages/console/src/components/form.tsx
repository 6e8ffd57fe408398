import { useBlocker, useRouter } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { AppError, describeError, invalidFields } from '../api/index.ts'
import { type Action, Button } from './button.tsx'
import { Changes } from './changes.tsx'
import { useShortcuts } from './shortcuts.ts'
import { announce, toast } from './toast.ts'
import { CopyId } from './values.tsx'

export interface FormOptions<Values extends object> {
  /** The saved values. Adopted when they change, unless something was typed. */
  values: Values
  /** The version of the saved values; without one, saves cannot conflict. */
  version?: string
  /** Reads the values and the version from the `current` object of a conflict. */
  fromCurrent?: (current: never) => Saved<Values>
  /** Saves. Resolves to the saved object; the next save carries its version. */
  save: (values: Values, version: string) => Promise<unknown>
  /** Said after a save; null: nothing. */
  savedText?: string | null
  /** For dialogs and sign-ins: nothing is said after a save, and leaving the page does not warn. */
  isTransient?: boolean
  /** Whether leaving what was typed asks first. Default: unless it is transient. */
  asksToLeave?: boolean
  /** In a dialog that the address may open: a navigation to the same page closes it, too. */
  isDialog?: boolean
}

interface Saved<Values> {
  values: Values
  version: string
}

/**
 * The options of a form that edits a saved object, or makes a new one. `find` finds the object in the response to a
 * conflict if that is a larger one.
 */
export function editFormOptions<Of extends { version: string | null } | undefined, Values extends object, Current = Of>(
  saved: Of,
  toValues: (saved: Of) => Values,
  find = (current: Current) => current as unknown as Of,
) {
  const read = (of: Of): Saved<Values> => ({ values: toValues(of), version: of?.version ?? '' })
  return { ...read(saved), fromCurrent: (current: Current) => read(find(current)) }
}

export type FormState<Values extends object> = ReturnType<typeof useForm<Values>>

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

function typedAfter<Values extends object>(typed: Partial<Values>, sent: Values): Partial<Values> {
  const names = (Object.keys(typed) as (keyof Values)[]).filter((name) => !isSame(typed[name], sent[name]))
  return Object.fromEntries(names.map((name) => [name, typed[name]])) as Partial<Values>
}

/** Errors that belong to a field without naming it. */
const FIELD_OF_CODE: Readonly<Record<string, string>> = { name_taken: 'name', email_taken: 'email' }

function fieldErrors(error: Error): Readonly<Record<string, string>> {
  if (!(error instanceof AppError)) return {}
  const field = FIELD_OF_CODE[error.code]
  return field ? { [field]: error.message } : error.details
}

function sentence(text: string): string {
  // A file's name, such as "rules.yaml", keeps its case.
  const first = /^[\w-]+\.\w/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?…]$/.test(first) ? first : `${first}.`
}

/** The object of a conflict as it is saved now; null if it was deleted meanwhile. Undefined for every other error. */
const currentOf = (reason: unknown): unknown =>
  reason instanceof AppError && reason.code === 'changed_meanwhile' && 'current' in reason.body
    ? reason.body.current
    : undefined

/** Asks before what was typed is left: by a navigation, by closing the window, or the dialog of the form. */
function useLeaveWarning(form: { isDirty: boolean; isSaving: boolean; asksToLeave: boolean; isDialog: boolean }) {
  const { isDirty, isSaving, asksToLeave, isDialog } = form
  const [close, setClose] = useState<() => void>()
  const router = useRouter()
  // Read by the blocker when a navigation begins, which may be in the same event as a save.
  const isDirtyRef = useRef(isDirty)
  useLayoutEffect(() => {
    isDirtyRef.current = isDirty && !isSaving
  }, [isDirty, isSaving])
  const shouldWarn = () => asksToLeave && isDirtyRef.current
  const blocker = useBlocker({
    // A drawer or a tab of the same page that changes only the search does not unmount the form of the page.
    shouldBlockFn: ({ current, next }) => (isDialog || current.pathname !== next.pathname) && shouldWarn(),
    enableBeforeUnload: shouldWarn,
    withResolver: true,
  })
  function stay() {
    if (close) return setClose(undefined)
    blocker.reset?.()
    // Until the next one, the router would leave pending what waits for the navigation, such as a button.
    void router.load()
  }
  return {
    isDirtyRef,
    blocker: {
      isBlocked: blocker.status === 'blocked' || close !== undefined,
      leave: () => (close ? close() : blocker.proceed?.()),
      stay,
    },
    /** Closes the dialog of the form; asks first if something was typed. */
    closing: (closeDialog: () => void) => () => (isDirty && asksToLeave ? setClose(() => closeDialog) : closeDialog()),
  }
}

/**
 * The state of a form: what was typed, the server's errors at their fields, and conflicts with other people's saves.
 */
export function useForm<Values extends object>(options: FormOptions<Values>) {
  const {
    save,
    fromCurrent,
    isTransient = false,
    asksToLeave = !isTransient,
    isDialog = false,
    savedText = isTransient ? null : 'Saved.',
  } = options
  const latest = { values: options.values, version: options.version ?? '' }
  const [seen, setSeen] = useState(latest)
  const [base, setBase] = useState(latest)
  const [typed, setTyped] = useState<Partial<Values>>({})
  const [failure, setFailure] = useState<{ error: Error; sent: Values }>()
  const [isSaving, setIsSaving] = useState(false)
  const [conflict, setConflict] = useState<Saved<Values>>()
  const labels = new Map<string, string>()

  const values = { ...base.values, ...typed }
  const isDirty = !isSame(values, base.values)
  if (!isSame(seen, latest)) {
    setSeen(latest)
    if (!isDirty) setBase(latest)
  }

  const { isDirtyRef, ...leaving } = useLeaveWarning({ isDirty, isSaving, asksToLeave, isDialog })

  /** Forgets what was typed, but for what was typed after it had been sent. */
  function forget(sent?: Values) {
    setTyped((before) => (sent ? typedAfter(before, sent) : {}))
    setFailure(undefined)
    setConflict(undefined)
  }

  async function saveAs(savedVersion: string, unreadable: Readonly<Record<string, string>> = {}) {
    if (isSaving) return
    setIsSaving(true)
    setFailure(undefined)
    try {
      if (Object.keys(unreadable).length > 0) throw invalidFields(unreadable)
      isDirtyRef.current = false
      const saved = (await save(values, savedVersion)) as { version?: string } | undefined
      setBase({ values, version: saved?.version ?? savedVersion })
      // What was read since then is adopted: not before, because the form had unsaved values.
      setSeen(latest)
      forget(values)
      if (savedText) toast(savedText)
    } catch (reason) {
      isDirtyRef.current = true
      const current = currentOf(reason)
      if (fromCurrent && current !== undefined) {
        setConflict(fromCurrent(current as never))
      } else {
        setFailure({ error: reason instanceof Error ? reason : new Error(String(reason)), sent: values })
      }
    } finally {
      setIsSaving(false)
    }
  }

  return {
    values,
    isDirty,
    isSaving,
    isTransient,
    error: failure?.error,
    /** The values and version that another person saved meanwhile. */
    conflict,
    /** The labels of the fields that are shown; errors of others are listed above the buttons. */
    labels,
    ...leaving,
    /** What a field needs: `<TextField {...form.field('name', 'Name')} />`. */
    field: <Name extends keyof Values & string>(name: Name, label: string) => {
      labels.set(name, label)
      // The error is shown until the value is another one than was sent.
      const error = failure && isSame(values[name], failure.sent[name]) ? fieldErrors(failure.error)[name] : undefined
      return {
        name,
        label,
        value: values[name],
        onValue: (value: Values[Name]) => setTyped((before) => ({ ...before, [name]: value })),
        error: error && sentence(error),
      }
    },
    /** Saves; `unreadable`: the errors of fields that the browser cannot read, which then prevent it. */
    submit: (unreadable?: Readonly<Record<string, string>>) => saveAs(base.version, unreadable),
    reset: () => {
      forget()
      setBase(latest)
    },
    /** Removes the message of a failed save whose cause is gone. */
    clearError: () => setFailure(undefined),
    /** Saves in place of the version of the conflict; `unreadable` as for `submit`. */
    keepMine: (unreadable?: Readonly<Record<string, string>>) => saveAs(conflict?.version ?? base.version, unreadable),
    takeTheirs: () => {
      forget()
      setBase(conflict ?? base)
    },
  }
}

/** The buttons of a form. */
export interface FormProps {
  /** Names the main button: `Save`, `Create key`. */
  action: string
  /** Shows the button to undo what was typed. */
  canReset?: boolean | undefined
  variant?: Action['variant']
  /** Further buttons. */
  extra?: ReactNode
}

/** A form with its buttons, errors and conflicts. ⌘/Ctrl-S saves. The focus goes to the first field with an error. */
export function Form<Values extends object>(props: FormProps & { form: FormState<Values>; children: ReactNode }) {
  const { form, action, variant = 'primary', canReset, extra, children } = props
  const element = useRef<HTMLFormElement>(null)
  useEffect(() => {
    const field = form.error && element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')
    if (!field) return
    // Screen readers read the error with a field that gets the focus, not when Enter was pressed in this field.
    if (field !== document.activeElement) return field.focus()
    announce(field.closest(':has(.field-error)')?.querySelector('.field-error')?.textContent ?? '')
  }, [form.error])
  useShortcuts({
    'mod+s': () => {
      // The page and its forms cannot be used below a dialog.
      const dialog = [...document.querySelectorAll('dialog[open]')].at(-1)
      if (dialog?.contains(element.current) === false) return false
      const isInside = element.current?.contains(document.activeElement)
      const isOnly = document.querySelectorAll('form[data-saves]').length === 1
      return isInside || (isOnly && !form.isTransient) ? element.current?.requestSubmit() : false
    },
  })
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    event.stopPropagation()
    void form.submit(unreadableFields(event.currentTarget))
  }
  return (
    <form
      ref={element}
      data-saves={form.isTransient ? undefined : true}
      noValidate
      className="form"
      onSubmit={onSubmit}
      aria-busy={form.isSaving}
    >
      {children}
      <FormErrors form={form} />
      {form.conflict ? <ConflictNotice form={form} theirs={form.conflict.values} /> : null}
      {form.blocker.isBlocked ? (
        <div ref={scrollTo} className="conflict" role="alert">
          <p>You have changes that are not saved.</p>
          <div className="actions">
            <Button label="Stay here" onClick={form.blocker.stay} />
            <Button label="Leave without saving" variant="danger" onClick={form.blocker.leave} />
          </div>
        </div>
      ) : null}
      <div className="actions">
        <Button label={action} type="submit" variant={variant} isBusy={form.isSaving} />
        {canReset && form.isDirty ? <Button label="Revert" onClick={form.reset} /> : null}
        {extra}
      </div>
    </form>
  )
}

/** The errors of dates and times of which a part is missing: their value is empty, as that of an empty field. */
function unreadableFields(form: HTMLFormElement): Record<string, string> {
  const inputs = [...form.querySelectorAll<HTMLInputElement>('input:enabled')].filter(
    ({ validity }) => validity.badInput,
  )
  return Object.fromEntries(inputs.map(({ name }) => [name, 'Enter all of it, or clear it.']))
}

function FormErrors<Values extends object>({ form }: { form: FormState<Values> }) {
  const { error } = form
  if (!error) return null
  const details = Object.entries(fieldErrors(error))
  const others = details.filter(([field]) => !form.labels.has(field))
  if (details.length > 0 && others.length === 0) return null
  return (
    <div className="form-error" role="alert">
      {details.length === 0 ? <p>{describeError(error)}</p> : null}
      {others.map(([field, message]) => (
        <p key={field}>{sentence(`${field}: ${message}`)}</p>
      ))}
      {error instanceof AppError && error.body.request_id && error.status >= 500 ? (
        <p>
          Request <CopyId id={error.body.request_id} />
        </p>
      ) : null}
    </div>
  )
}

/** Shows what asks for a decision. */
const scrollTo = (element: HTMLElement | null) => element?.scrollIntoView({ block: 'nearest' })

/** Shows what was saved meanwhile beside what was typed here. */
function ConflictNotice<Values extends object>({ form, theirs }: { form: FormState<Values>; theirs: Values }) {
  const changes = (Object.keys(theirs) as (keyof Values & string)[])
    .filter((name) => !isSame(theirs[name], form.values[name]))
    .map((name) => ({ field: form.labels.get(name) ?? name, old: form.values[name], new: theirs[name] }))
  return (
    <div ref={scrollTo} className="conflict" role="alert">
      <strong>Changed meanwhile</strong>
      <p>
        Another person, or you in another tab, saved or deleted this while you were editing. Nothing of either version
        is lost until you choose.
      </p>
      <Changes names={['Yours', 'Saved now']} changes={changes} />
      <div className="actions">
        <Button label="Take the saved version" onClick={form.takeTheirs} />
        <Button
          label="Keep mine"
          variant="primary"
          onClick={({ currentTarget }) => form.keepMine(unreadableFields(currentTarget.form!))}
        />
      </div>
    </div>
  )
}
