import type { AppErrorBody } from '@workflow-service/contract'
import { quote } from '../../components/text.ts'

const HINTS: Record<number, string> = {
  401: 'It asks for credentials: it must know the signing secret of this source, to accept a valid X-Service-Token.',
  403: 'It forbids the request: check its access rules, and that it knows the signing secret of this source.',
  404: 'Nothing is at this path: check the path of the URL.',
}
const TYPE_HINT =
  'The request has the type service.webhook.verification: your endpoint must answer it before it reads anything else.'

/** The next step after a status that refuses the verification; undefined if the status says no more. */
export const hintOfStatus = (status: number): string | undefined =>
  HINTS[status] ?? (status >= 400 && status < 500 ? TYPE_HINT : undefined)

/** A reason with the beginning of what the endpoint answered. */
export function withAnswer(reason: string, status: number, answer: string | null | undefined): string {
  const quoted = quote(answer)
  const end = /[.!?…]”$/.test(quoted) ? '' : '.'
  const said = `Your endpoint answered ${status}${quoted && `: ${quoted}`}${end}`
  return reason.replace(`The endpoint answered ${status}.`, () => said)
}

/** Why the endpoint did not confirm, in the words of the service, and the next step. */
export function describeVerificationFailure({ message = '', status = 0, ...error }: Partial<AppErrorBody>): string {
  return [withAnswer(message, status, error.rejected_answer), hintOfStatus(status)].filter(Boolean).join(' ')
}
