import type { AppDeliveryOut } from '@workflow-service/contract'
import { FullTime, StatusBadge, statusText } from './status-and-time.tsx'

const TELLING_FIELDS = 2
/** Names of fields by which people tell things apart. */
const TELLING = /(^|_)(id|number|no|name|subject|title|email|customer|order|sku|message|text)($|_)/i

/** The two fields of a payload by which people tell deliveries apart: named like one, else the first. */
export function tellingFields(body: Record<string, unknown> | null): string {
  const plain = Object.entries(body ?? {}).filter(([, value]) => ['string', 'number'].includes(typeof value))
  const telling = plain.filter(([name]) => TELLING.test(name))
  const chosen = [...new Set([...telling, ...plain])].slice(0, TELLING_FIELDS)
  return chosen.map(([name, value]) => `${name}: ${String(value)}`).join(', ')
}

/** The beginning of a payload on one line. */
export function PayloadStart({ kind, request_body: body }: AppDeliveryOut) {
  if (kind === 'verification') return <span className="muted">Verification</span>
  return <TextStart text={tellingFields(body)} />
}

/** The beginning of a text on one line. */
export const TextStart = ({ text }: { text: string }) => (
  <span className="muted clamp one" title={text}>
    {text}
  </span>
)

/** The outcome with the status of the answer: “Rejected 422”. */
export const OutcomeCell = ({ outcome, status }: AppDeliveryOut) => (
  <StatusBadge status={outcome}>{status ? `${statusText(outcome)} ${status}` : statusText(outcome)}</StatusBadge>
)

/** The columns of a short list beside something else. */
export const SHORT_COLUMNS = [
  { header: 'Time', cell: ({ created_at: at }: AppDeliveryOut) => <FullTime value={at} /> },
  { header: 'Outcome', cell: (delivery: AppDeliveryOut) => <OutcomeCell {...delivery} /> },
  { header: 'Payload', cell: (delivery: AppDeliveryOut) => <PayloadStart {...delivery} /> },
]
