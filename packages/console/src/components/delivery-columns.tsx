import type { AppDeliveryOut } from '@workflow-service/contract'
import type { Column } from './table.tsx'
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

/** A name on one line, cut off where it is long. */
export const oneLine = (text: string) => (
  <span className="one-line" title={text}>
    {text}
  </span>
)

/** The beginning of a text on one line. */
export const TextStart = ({ text }: { text: string }) => (
  <span className="muted clamp one" title={text}>
    {text}
  </span>
)

export type DeliveryColumn = Column<AppDeliveryOut>

/** The first columns of every list of deliveries. */
export const SHORT_COLUMNS: [DeliveryColumn, DeliveryColumn, DeliveryColumn] = [
  { header: 'Time', cell: ({ created_at: at }) => <FullTime value={at} /> },
  {
    header: 'Outcome',
    // “Rejected 422”
    cell: ({ outcome, status }) => (
      <StatusBadge status={outcome}>{status ? `${statusText(outcome)} ${status}` : statusText(outcome)}</StatusBadge>
    ),
  },
  {
    header: 'Payload',
    cell: ({ kind, request_body: body }) => (
      <TextStart text={kind === 'verification' ? 'Verification' : tellingFields(body)} />
    ),
    isOptional: true,
  },
]
