import { useNavigate } from '@tanstack/react-router'
import type { AppWebhookSourceOut } from '@workflow-service/contract'
import { VERIFICATION_DEADLINE_MS } from '@workflow-service/contract/limits'
import { useState } from 'react'
import { AppError, call, invalid, newId, refresh, useRead, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { RadioGroup, TextAreaField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, type FormState, useForm } from '../../components/form.tsx'
import { Loaded, Notice } from '../../components/page.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { toast } from '../../components/toast.ts'
import { CopyButton } from '../../components/values.tsx'
import { DeliveryDetails } from '../deliveries/index.tsx'
import { ExampleField, readExample } from './example-field.tsx'
import { HowToCheck, showSecret } from './secret-dialog.tsx'
import { describeVerificationFailure } from './verification-cause.ts'

const FIRST_EXAMPLE = JSON.stringify({ order_id: 'A-1001', customer: 'Ada Lovelace', total: 129.5 }, null, 2)

const newSecret = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))

function secretChoiceOf(source: AppWebhookSourceOut | undefined, secret: string): 'keep' | 'set' | 'none' {
  if (source && !source.has_signing_secret) return 'none'
  return secret ? 'set' : 'keep'
}

/** `secret`: that of a source which is made here. Also one whose response was lost shows it once it is saved again. */
const valuesOf = (source: AppWebhookSourceOut | undefined, secret = '') => ({
  name: source?.name ?? '',
  description: source?.description ?? '',
  endpoint_url: source?.endpoint_url ?? '',
  secret_choice: secretChoiceOf(source, secret),
  signing_secret: secret,
  example_request_body: source ? JSON.stringify(source.example_request_body, null, 2) : FIRST_EXAMPLE,
  approval: source?.approval ?? 'none',
})
type Values = ReturnType<typeof valuesOf>

/** Whether only settings are changed that the endpoint does not confirm (contract README, "Webhook sources"). */
function changesSettingsOnly(source: AppWebhookSourceOut | undefined, typed: Values): boolean {
  const saved = valuesOf(source)
  const isConfirmed = JSON.stringify({ ...typed, approval: saved.approval }) === JSON.stringify(saved)
  return source !== undefined && isConfirmed && typed.approval !== saved.approval
}

/** Brings an error of the save to the field where it can be corrected. */
function toFieldError(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  if (error.code === 'verification_failed') {
    const { details } = invalid('endpoint_url', 'Not verified.').body
    return new AppError(422, { ...error.body, message: describeVerificationFailure(error.body), details })
  }
  if (error.code === 'name_taken') return invalid('name', 'Another webhook source has this name. Choose another one.')
  // The stored secret is not sent to another server.
  if (error.body.details?.some(({ field, code }) => field === 'signing_secret' && code === 'missing')) {
    return invalid('signing_secret', 'Enter the secret again, or choose not to sign.')
  }
  const details = Object.entries(error.details).map(([path, message]) => {
    const [field = '', ...rest] = path.split('.')
    return { field, code: 'invalid', message: [rest.join('.'), message].filter(Boolean).join(' ') }
  })
  return new AppError(error.status, { ...error.body, ...(details.length > 0 ? { details } : {}) })
}

const APPROVALS = {
  none: 'Send at once',
  first: 'Ask a person until the first one was accepted',
  always: 'Ask a person every time',
}
const APPROVAL_HINTS = { always: 'The run waits up to 7 days for an admin.' }

/** What is saved of the typed values; throws if the example is none. */
function toBody(typed: Values) {
  const { secret_choice: choice, signing_secret: secret, ...values } = typed
  const { example, error } = readExample(values.example_request_body)
  if (!example) throw invalid('example_request_body', error ?? 'Enter a JSON object.')
  const secrets = { keep: {}, set: { signing_secret: secret }, none: { signing_secret: null } }
  return { ...values, example_request_body: example, ...secrets[choice] }
}

/** What a save does, beside its button. */
const SETTINGS_HINT = 'Approval is saved without a request to the endpoint, so also while it is down.'
const SAVE_HINT =
  'Name, description, URL, example and secret are saved when the endpoint confirms them, and approval alone without a request.'

/** Why the endpoint did not confirm. */
function Failure({ error, isNew, isSaving }: { error: AppError; isNew: boolean; isSaving: boolean }) {
  return (
    <Notice kind="danger">
      <p role="alert">
        {error.message}
        {isNew ? '' : ' The earlier version stays in use.'}
      </p>
      <Button label={isNew ? 'Verify again and create' : 'Verify again and save'} type="submit" isBusy={isSaving} />
      {error.body.delivery_id ? <FailedRequest id={error.body.delivery_id} /> : null}
    </Notice>
  )
}

/** Creates a webhook source, or edits it. Saving verifies the endpoint. */
export function SourceForm({ source }: { source?: AppWebhookSourceOut }) {
  const navigate = useNavigate()
  const [created, setCreated] = useState(() => ({ id: newId(), secret: newSecret() }))
  const id = source?.id ?? created.id
  const form = useForm<Values>({
    ...editFormOptions(source, (saved) => valuesOf(saved, source ? '' : created.secret)),
    savedText: null,
    async save(typed, version) {
      const { secret_choice: choice, signing_secret: secret, name } = typed
      const params = { source_id: id }
      // Beside another version, the values that are not typed are older ones, and the save is a conflict.
      if (changesSettingsOnly(source, typed) && source?.version === version) {
        const settings = { approval: typed.approval, version }
        const saved = await mutate('saveWebhookSourceSettings', { params, body: settings })
        toast('Saved, without a request to the endpoint.')
        return saved
      }
      const body = { ...toBody(typed), version: version || null }
      // If the response is lost, this is the secret that is stored.
      if (!source) setCreated({ id, secret })
      const saved = await call('saveWebhookSource', { params, body }).catch((reason) => {
        throw toFieldError(reason)
      })
      // Afterwards: the form takes what is read then, without the secret.
      void refresh()
      // The page of a new source says so.
      if (source) toast('Verified and saved.')
      else await navigate(linkTo('webhook_source', id))
      if (choice === 'set') showSecret(name, secret)
      return saved
    },
  })
  const failure = form.error instanceof AppError && form.error.code === 'verification_failed' ? form.error : undefined
  const isSettingsOnly = changesSettingsOnly(source, form.values)
  const isVerifying = form.isSaving && !isSettingsOnly
  const verb = isSettingsOnly ? 'Save' : source ? 'Verify and save' : 'Verify and create'
  return (
    <Form
      form={form}
      action={isVerifying ? 'Verifying…' : form.isSaving ? 'Saving…' : verb}
      canReset={source !== undefined}
      extra={
        <>
          <span className="muted" role="status">
            {isVerifying ? `Waiting for the endpoint to confirm: at most ${VERIFICATION_DEADLINE_MS / 1_000} s` : null}
          </span>
          {source && !isVerifying ? <span className="muted">{isSettingsOnly ? SETTINGS_HINT : SAVE_HINT}</span> : null}
        </>
      }
    >
      <div className="narrow stack">
        <TextField
          required
          placeholder="Shop orders"
          hint="You write this name in a workflow’s task to send here."
          {...form.field('name', 'Name')}
        />
        <TextAreaField
          rows={2}
          placeholder="Use it for every new order of a customer."
          hint="Optional. A model reads it to choose a source; the built-in agent goes by the names in the task."
          {...form.field('description', 'When to send here')}
        />
        <TextField
          type="url"
          inputMode="url"
          required
          spellCheck={false}
          placeholder="https://example.com/webhooks/orders"
          hint={
            <>
              Where your server takes the data. Verifying sends one test request.{' '}
              {source?.has_signing_secret
                ? 'Another path of this server gets the stored secret; for another server, enter it again.'
                : null}
              {source ? null : (
                <>
                  No server yet? While you write one, <code>npm run -s wf -- listen 3000/orders</code> sends it the same
                  requests, to port 3000 of your machine.
                </>
              )}
            </>
          }
          {...form.field('endpoint_url', 'URL')}
        />
        {failure ? <Failure error={failure} isNew={!source} isSaving={form.isSaving} /> : null}
        <ExampleField {...form.field('example_request_body', 'Example body')} />
        <MoreSettings form={form} source={source} isRefused={[401, 403].includes(failure?.body.status ?? 0)} />
      </div>
    </Form>
  )
}

function FailedRequest({ id }: { id: string }) {
  const query = useRead('getDelivery', { params: { delivery_id: id } })
  return (
    <details>
      <summary>See the request and the answer</summary>
      <div className="stack">
        <Loaded query={query}>{(delivery) => <DeliveryDetails delivery={delivery} isPart />}</Loaded>
      </div>
    </details>
  )
}

interface MoreSettingsProps {
  form: FormState<Values>
  source: AppWebhookSourceOut | undefined
  /** Whether the endpoint answered as one does that does not know the secret. */
  isRefused: boolean
}

/** Signing and approval, folded: a new source needs no choice. An error inside opens them. */
function MoreSettings({ form, source, isRefused }: MoreSettingsProps) {
  const { secret_choice: choice, signing_secret: secret, approval } = form.values
  const [isOpen, setIsOpen] = useState(false)
  const field = form.field('signing_secret', 'Secret')
  const choices = source?.has_signing_secret
    ? { keep: 'Keep the stored one', set: 'Replace it', none: 'Remove it: do not sign' }
    : { set: 'Sign with a secret', none: 'Do not sign' }
  return (
    <details
      open={isOpen || isRefused || field.error !== undefined}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary>
        More settings: {choice === 'none' ? 'not signed' : 'signed'},{' '}
        {approval === 'none' ? 'sent at once' : 'sent after approval'}
      </summary>
      <div className="stack">
        <RadioGroup
          {...form.field('secret_choice', 'Signing secret')}
          error={choice === 'set' ? undefined : field.error}
          options={choices}
        />
        {choice === 'set' ? (
          <TextField
            className="code"
            spellCheck={false}
            hint="A server that checks it already needs it before you verify. It is shown once more afterwards."
            {...field}
            aside={
              <span className="row">
                <Button label="New secret" className="small" onClick={() => field.onValue(newSecret())} />
                <CopyButton text={secret} what="secret" className="small" />
              </span>
            }
          />
        ) : null}
        <p className="muted">
          With the secret your server checks the header X-Service-Token of each request. <HowToCheck />
        </p>
        <RadioGroup {...form.field('approval', 'Approval')} options={APPROVALS} hints={APPROVAL_HINTS} />
      </div>
    </details>
  )
}
