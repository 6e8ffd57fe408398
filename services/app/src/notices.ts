import {
  type DueNotice,
  finishNotice,
  listNoticeOrganizations,
  recordNotices,
  takeDueNotices,
} from '@workflow-service/database'
import { ApiError, describeError, newRequestId, withTimeout } from '@workflow-service/service-kit'
import { createTransport } from 'nodemailer'
import type { AppServiceContext } from './app-service-context.ts'

type NoticeContext = Pick<AppServiceContext, 'config' | 'db' | 'dispatcher' | 'logger'>

const AT_ONCE = 10
/** Of each step of SMTP. */
const STEP_TIMEOUT_MS = 15_000
/** Less than the minute after which a notice is due again: another process would send it, too. */
const MAX_SEND_MS = 40_000

/** Records the notices that are due, of all organizations with a recipient. One that fails does not stop the others. */
export async function makeNotices({ config, db, logger }: NoticeContext, signal: AbortSignal): Promise<void> {
  const hasMail = config.smtp !== undefined
  for (const organizationId of await listNoticeOrganizations(db, hasMail)) {
    if (signal.aborted) return
    await recordNotices(db, organizationId, hasMail).catch((error: unknown) => {
      logger.warn({ organization_id: organizationId, error: describeError(error) }, 'notice.not_made')
    })
  }
}

/** Sends the notices that are due until there is none. */
export async function sendNotices(ctx: NoticeContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const due = await takeDueNotices(ctx.db, AT_ONCE, ctx.config.smtp !== undefined)
    await Promise.all(due.map((notice) => sendNotice(ctx, notice)))
    if (due.length < AT_ONCE) return
  }
}

/** Sends a notice, and records what became of it. Resolves to why it was not sent. */
export async function sendNotice(ctx: NoticeContext, notice: DueNotice): Promise<string | null> {
  const error = await trySending(ctx, notice).catch((reason: unknown) =>
    reason instanceof ApiError ? reason.message : describeError(reason).message,
  )
  await finishNotice(ctx.db, notice.id, error)
  const { id: noticeId, organizationId } = notice
  if (error !== null) {
    ctx.logger.warn({ notice_id: noticeId, organization_id: organizationId, error }, 'notice.not_sent')
  }
  return error
}

async function trySending({ config, db, dispatcher }: NoticeContext, notice: DueNotice): Promise<string | null> {
  const { organizationId, userId, recipient, body } = notice
  const where = { id: organizationId, isSuspended: true }
  if ((await db.prisma.organization.count({ where })) > 0) return 'The organization is suspended.'
  if (userId === null) {
    const params = { organization_id: organizationId }
    return (await dispatcher.call('sendNotice', { params, body, requestId: newRequestId() })).error
  }
  const { smtp, appUrl } = config
  if (!smtp) return 'E-mail is not set up: SMTP_URL is not set.'
  const transport = createTransport({
    url: smtp.url,
    dnsTimeout: STEP_TIMEOUT_MS,
    connectionTimeout: STEP_TIMEOUT_MS,
    greetingTimeout: STEP_TIMEOUT_MS,
    socketTimeout: STEP_TIMEOUT_MS,
  })
  try {
    const sending = transport.sendMail({
      from: smtp.from,
      // A string would be split at commas.
      to: { name: '', address: recipient },
      subject: body.text.replaceAll(/\s+/g, ' ').slice(0, 150),
      text: [body.text, ...(appUrl ? [`${appUrl}/`] : []), 'You chose this under Account, Notices.'].join('\n\n'),
      messageId: `<${notice.id}@workflow-service>`,
    })
    await withTimeout(sending, MAX_SEND_MS)
    return null
  } finally {
    transport.close()
  }
}
