import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type NoticeBody, truncateText } from '@workflow-service/contract'
import {
  deleteHiddenNotice,
  type DueNotice,
  finishNotice,
  foldCase,
  listEventOrganizations,
  listNoticeOrganizations,
  listOrganizations,
  recordNotices,
  recordRunEvents,
  takeDueNotices,
} from '@workflow-service/database'
import { ApiError, describeError, newRequestId, withTimeout } from '@workflow-service/service-kit'
import { createTransport } from 'nodemailer'
import type { AppServiceContext } from './app-service-context.ts'
import { ADDRESS_QUOTA, MAIL_QUOTA } from './mail-quota.ts'
import { LOOPBACK_NAME } from './require-host.ts'

type NoticeContext = Pick<
  AppServiceContext,
  'config' | 'db' | 'dispatcher' | 'logger' | 'mailLimiter' | 'addressLimiter'
>

const AT_ONCE = 40
/** How often others are looked for while some are under way. */
const LOOK_MS = 1_000
/** Of each step of SMTP. */
const STEP_TIMEOUT_MS = 15_000
/** Less than the minute after which a notice is due again: another process would send it, too. */
const MAX_SEND_MS = 40_000
const SUBJECT_MAX_LENGTH = 150
/** The pages that show what notices are about; for others, the overview does. */
const PAGES: Partial<Record<NoticeBody['type'], string>> = {
  'notice.approvals': 'approvals',
  'notice.source_paused': 'sources',
  'notice.source_failing': 'sources',
  'notice.key_expiring': 'keys',
}

/** Records the notices that are due, of all organizations with a recipient. */
export async function makeNotices(ctx: NoticeContext, signal: AbortSignal): Promise<void> {
  const hasMail = ctx.config.smtp !== undefined
  const organizationIds = await listNoticeOrganizations(ctx.db, hasMail)
  await recordForEach(ctx, organizationIds, signal, (id) => recordNotices(ctx.db, id, hasMail))
}

/** Records the events of runs that are due. */
export async function makeRunEvents(ctx: NoticeContext, signal: AbortSignal): Promise<void> {
  await recordForEach(ctx, await listEventOrganizations(ctx.db), signal, (id) => recordRunEvents(ctx.db, id))
}

/** One organization that fails does not stop the others. */
async function recordForEach(
  { logger }: NoticeContext,
  organizationIds: readonly string[],
  signal: AbortSignal,
  record: (organizationId: string) => Promise<unknown>,
): Promise<void> {
  for (const organizationId of organizationIds) {
    if (signal.aborted) return
    await record(organizationId).catch((error: unknown) => {
      logger.warn({ organization_id: organizationId, error: describeError(error) }, 'notice.not_made')
    })
  }
}

/** Sends the notices that are due until there is none. While some of an organization are under way, its others wait. */
export async function sendNotices(ctx: NoticeContext, signal: AbortSignal): Promise<void> {
  const underWay = new Map<Promise<unknown>, string>()
  const { db, config } = ctx
  try {
    while (!signal.aborted) {
      const free = AT_ONCE - underWay.size
      const busy = [...new Set(underWay.values())]
      const due = free > 0 ? await takeDueNotices(db, free, config.smtp !== undefined, busy) : []
      for (const notice of due) {
        const sending = sendNotice(ctx, notice).finally(() => underWay.delete(sending))
        underWay.set(sending, notice.organizationId)
      }
      if (underWay.size === 0) return
      await Promise.race([...underWay.keys(), sleep(LOOK_MS, undefined, { ref: false })])
    }
    await Promise.all(underWay.keys())
  } finally {
    // After an error, too: one that is sent and not recorded is sent again.
    await Promise.allSettled(underWay.keys())
  }
}

/** Sends a notice, and records what became of it. Resolves to why it was not sent. */
export async function sendNotice(ctx: NoticeContext, notice: DueNotice): Promise<string | null> {
  if (await deleteHiddenNotice(ctx.db, notice.id)) return null
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

async function trySending(
  { config, db, dispatcher, mailLimiter, addressLimiter }: NoticeContext,
  notice: DueNotice,
): Promise<string | null> {
  const { organizationId, userId, recipient, body, attempts } = notice
  const [organization] = await listOrganizations(db, { id: organizationId, limit: 1 })
  if (!organization || organization.isSuspended) return 'The organization is suspended.'
  if (userId === null) {
    const params = { organization_id: organizationId }
    return (
      await dispatcher.call('sendNotice', { params, query: { attempt: attempts }, body, requestId: newRequestId() })
    ).error
  }
  const { smtp, appUrl } = config
  if (!smtp) return 'Email is not set up: SMTP_URL is not set.'
  const address = `mail-address:${hash('sha256', foldCase(recipient), 'base64url')}`
  const ofOrganization = `${address}:${organizationId}`
  const counted = await mailLimiter.consume(ofOrganization)
  const countedInAll = counted.isAllowed ? await addressLimiter.consume(address) : counted
  if (!countedInAll.isAllowed) {
    if (counted.isAllowed) mailLimiter.giveBack(ofOrganization, counted)
    return `The address has got ${(counted.isAllowed ? ADDRESS_QUOTA : MAIL_QUOTA).limit} emails within an hour: it gets no more for now.`
  }
  const transport = createTransport({
    url: smtp.url.href,
    // A proxy that is on the way could leave STARTTLS out of what the server offers.
    requireTLS: smtp.url.password !== '' && !LOOPBACK_NAME.test(smtp.url.hostname),
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
      subject: truncateText(`[${organization.name}] ${body.text}`.replaceAll(/\s+/g, ' '), SUBJECT_MAX_LENGTH),
      text: [
        body.text,
        ...(appUrl ? [`${appUrl}/${PAGES[body.type] ?? ''}?organization=${organizationId}`] : []),
        `You get the notices of ${organization.name} that you chose under Account` +
          (appUrl ? `: ${appUrl}/account?organization=${organizationId}` : '.'),
      ].join('\n\n'),
      messageId: `<${notice.id}@workflow-service>`,
      // Absences are not announced to the sender (RFC 3834).
      headers: { 'Auto-Submitted': 'auto-generated' },
    })
    await withTimeout(sending, MAX_SEND_MS)
    return null
  } catch (error) {
    mailLimiter.giveBack(ofOrganization, counted)
    addressLimiter.giveBack(address, countedInAll)
    throw error
  } finally {
    transport.close()
  }
}
