import { useNavigate } from '@tanstack/react-router'
import type { AppWebhookSourceOut } from '@workflow-service/contract'
import {
  VERIFICATION_DEADLINE_MS,
  WEBHOOK_SOURCE_DESCRIPTION_MAX_LENGTH,
  WEBHOOK_SOURCE_NAME_MAX_LENGTH,
} from '@workflow-service/contract/limits'
import { useRef, useState } from 'react'
import { AppError, call, invalid, invalidFields, newId, refresh, useMe, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { RadioGroup, TextAreaField, TextField } from '../../components/fields.tsx'
import { editing, Form, type FormState, useForm } from '../../components/form.tsx'
import { Loaded, Notice } from '../../components/page.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { CopyButton } from '../../components/values.tsx'
import { DeliveryDetails } from '../deliveries/index.tsx'
import { ExampleField, readExample } from './example-field.tsx'
import { describeVerificationFailure } from './verification-cause.ts'

const FIRST_EXAMPLE = JSON.stringify({ order_id: 'A-1001', customer: 'Ada Lovelace', total: 129.5 }, null, 2)

const newSecret = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))

const secretChoiceOf = (source: AppWebhookSourceOut | undefined): 'keep' | 'set' | 'none' =>
  source ? (source.has_signing_secret ? 'keep' : 'none') : 'set'

const valuesOf = (source: AppWebhookSourceOut | undefined, secret = '') => ({
  name: source?.name ?? '',
  description: source?.description ?? '',
  endpoint_url: source?.endpoint_url ?? '',
  secret_choice: secretChoiceOf(source),
  signing_secret: secret,
  example_request_body: source ? JSON.stringify(source.example_request_body, null, 2) : FIRST_EXAMPLE,
  approval: source?.approval ?? 'none',
})
type Values = ReturnType<typeof valuesOf>

/** Whether requests with the stored secret would go to another server. */
function isOtherServer(stored: string, typed: string): boolean {
  const [one, other] = [URL.parse(stored), URL.parse(typed)]
  return one !== null && other !== null && one.origin !== other.origin
}

const isHttpUrl = (text: string) => /^https?:$/.test(URL.parse(text)?.protocol ?? '')

/** Brings an error of the save to the field where it can be corrected. */
function toFieldError(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  if (error.code === 'verification_failed') {
    const { details } = invalid('endpoint_url', 'Not verified.').body
    return new AppError(422, { ...error.body, message: describeVerificationFailure(error.body), details })
  }
  if (error.code === 'name_taken') return invalid('name', 'Another webhook source has this name. Choose another one.')
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

/** Creates a webhook source, or edits it. Saving verifies the endpoint. */
export function SourceForm({ source }: { source?: AppWebhookSourceOut }) {
  const navigate = useNavigate()
  const [created] = useState(() => ({ id: newId(), secret: newSecret() }))
  const id = source?.id ?? created.id
  const cancel = useRef<AbortController>(null)
  const form = useForm<Values>({
    ...editing(source, (saved) => valuesOf(saved, source ? '' : created.secret)),
    // The page of a new source says so.
    savedText: source ? 'Verified and saved.' : null,
    async save({ secret_choice: choice, signing_secret: secret, ...values }, version) {
      const { example, error } = readExample(values.example_request_body)
      const errors: Record<string, string> = {}
      if (values.name.trim() === '') errors['name'] = 'Required.'
      if (!isHttpUrl(values.endpoint_url)) errors['endpoint_url'] = 'Enter a URL with https:// or http://.'
      if (choice === 'set' && secret === '')
        errors['signing_secret'] = 'Enter a secret, generate one, or choose not to sign.'
      if (choice === 'keep' && source && isOtherServer(source.endpoint_url, values.endpoint_url))
        errors['signing_secret'] = 'Enter the secret again, or choose not to sign.'
      if (!example) errors['example_request_body'] = error ?? 'Enter a JSON object.'
      if (!example || Object.keys(errors).length > 0) throw invalidFields(errors)
      const secrets = { keep: {}, set: { signing_secret: secret }, none: { signing_secret: null } }
      const body = { ...values, example_request_body: example, ...secrets[choice], version: version || null }
      cancel.current = new AbortController()
      const { signal } = cancel.current
      const saved = await call('saveWebhookSource', { params: { source_id: id }, body }, signal).catch((reason) => {
        if (!signal.aborted) throw toFieldError(reason)
        void refresh(['webhook_sources'])
        const message =
          'You stopped waiting. The verification request may have arrived, and the source is saved if the endpoint confirmed.'
        throw new AppError(0, { code: 'cancelled', message })
      })
      void refresh()
      if (!source) await navigate(linkTo('webhook_source', id))
      return saved
    },
  })
  const failure = form.error instanceof AppError && form.error.code === 'verification_failed' ? form.error : undefined
  return (
    <Form
      form={form}
      action={form.isSaving ? 'Verifying…' : source ? 'Verify and save' : 'Verify and create'}
      canReset={source !== undefined}
      extra={
        form.isSaving ? (
          <>
            <Button label="Cancel" onClick={() => cancel.current?.abort()} />
            <span className="muted" role="status">
              Waiting for the endpoint to confirm: at most {VERIFICATION_DEADLINE_MS / 1_000} s
            </span>
          </>
        ) : null
      }
    >
      <div className="narrow stack">
        <TextField
          required
          maxLength={WEBHOOK_SOURCE_NAME_MAX_LENGTH}
          placeholder="Shop orders"
          hint="You write this name in a workflow’s task to send here."
          {...form.field('name', 'Name')}
        />
        <TextAreaField
          maxLength={WEBHOOK_SOURCE_DESCRIPTION_MAX_LENGTH}
          rows={2}
          placeholder="Use it for every new order of a customer."
          hint="Optional. Helps the agent of a workflow choose this source."
          {...form.field('description', 'When to send here')}
        />
        <TextField
          type="url"
          inputMode="url"
          required
          spellCheck={false}
          placeholder="https://example.com/webhooks/orders"
          hint="Where your server takes the data. Verifying sends one test request."
          {...form.field('endpoint_url', 'URL')}
        />
        {failure ? (
          <Notice kind="danger">
            <p role="alert">
              {failure.message} Nothing was saved{source ? '; the earlier version stays in use' : ''}.
            </p>
            <Button
              label={source ? 'Verify again and save' : 'Verify again and create'}
              type="submit"
              isBusy={form.isSaving}
            />
            {failure.body.delivery_id ? <FailedRequest id={failure.body.delivery_id} /> : null}
          </Notice>
        ) : null}
        <ExampleField {...form.field('example_request_body', 'Example body')} />
        <MoreSettings form={form} source={source} />
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

/** Signing and approval, folded: a new source needs no choice. An error inside opens them. */
function MoreSettings({ form, source }: { form: FormState<Values>; source: AppWebhookSourceOut | undefined }) {
  const { secret_choice: choice, signing_secret: secret, endpoint_url: url, approval } = form.values
  const { api_url: apiUrl } = useMe()
  const [isOpen, setIsOpen] = useState(false)
  const field = form.field('signing_secret', 'Secret')
  const mustRepeat = choice === 'keep' && source !== undefined && isOtherServer(source.endpoint_url, url)
  const choices = source?.has_signing_secret
    ? { keep: 'Keep the stored one', set: 'Replace it', none: 'Remove it: do not sign' }
    : { set: 'Sign with a secret', none: 'Do not sign' }
  return (
    <details
      open={isOpen || mustRepeat || field.error !== undefined}
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
        {mustRepeat ? (
          <Notice kind="warning">
            This URL is on another server than the saved one. Choose “Replace it” and enter a secret, or “Remove it”:
            the stored secret is never sent to another server.
          </Notice>
        ) : null}
        {choice === 'set' ? (
          <TextField
            className="code"
            spellCheck={false}
            hint="Copy it to your server now: after saving it is never shown again."
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
          With the secret your server checks the header X-Service-Token of each request.{' '}
          {apiUrl ? (
            <a href={`${apiUrl}/docs#receiving`} target="_blank" rel="noreferrer">
              How to check it
            </a>
          ) : null}
        </p>
        <RadioGroup {...form.field('approval', 'Approval')} options={APPROVALS} hints={APPROVAL_HINTS} />
      </div>
    </details>
  )
}
