import { type AppliedManifest, applyManifests, findWebhookSource, ManifestError } from '@workflow-service/database'
import type { Command } from 'commander'
import { addCommand, type CommandResult, type Run } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import type { DispatcherClient } from '../dispatcher-client.ts'
import { manifestRefusal, readManifestFiles } from '../manifest-file.ts'
import { Refusal } from '../refusal.ts'
import { paint, renderTable, type Terminal } from '../terminal.ts'

/** `wf apply FILE…` */
export function addApplyCommand(program: Command, run: Run): void {
  addCommand(program, 'apply', 'Make organizations as manifests say.')
    .argument('<file...>', 'manifests, YAML or JSON, one organization each; - is standard input')
    .addHelpText('after', HELP)
    .action(run(apply))
}

const HELP = `
Every file is checked whole before anything is written, and all faults are named with their paths. Then everything is
written in one transaction, and the webhook sources are saved through the dispatcher, which asks each endpoint to confirm
what is new or changed. A source whose endpoint does not confirm stays as it was; everything else is applied all the
same, the reason is shown, and the exit status is 1. Applying again changes nothing: unchanged sources are not asked again.

  Ids                given ones are used; others follow from the names, so the same file gives the same ids everywhere.
                     Renaming something without an id therefore makes a new thing.
  Not in the file    users, API keys, webhook sources, workflows and sessions that the file does not name stay as they
                     are. Inside a workflow that it names, users, triggers and files become exactly those of the file.
  Left out           a field takes its default, except: signing_secret keeps the stored one (null removes it), a key's
                     scopes and revoked and a session's open stay as they are.
  API keys           key: … records that key, in place of an earlier one of the name. Without it, a key is made when the
                     name is new, and shown once.
  verify: false      records a webhook source without asking its endpoint: for tests and migrations.
`

/** What came of a webhook source. */
interface SourceResult {
  id: string
  name: string
  outcome: 'created' | 'changed' | 'unchanged' | 'failed'
  /** Whether its endpoint has confirmed what is stored. */
  verified: boolean
  /** Of `failed`: the dispatcher's error. */
  error?: Record<string, unknown> & { message: string }
}

type Applied = AppliedManifest & { sources: SourceResult[]; unverified: string[] }

/** Sources that are saved at the same time; each may wait 10 s for its endpoint. */
const SAVES_AT_ONCE = 8

async function apply(ctx: CliContext, names: string[]): Promise<CommandResult> {
  const files = await readManifestFiles(names)
  // Asked for before anything is written: a missing setting is no reason to stop half way.
  const hasSources = files.some(({ manifest }) => (manifest.webhook_sources ?? []).length > 0)
  const dispatcher = hasSources ? ctx.dispatcher() : undefined
  const applied: Applied[] = []
  try {
    const manifests = files.map(({ manifest }) => manifest)
    for (const result of await applyManifests(ctx.database(), manifests)) {
      const sources = dispatcher ? await saveSources(ctx, dispatcher, result) : []
      const unverified = result.webhookSources.filter(({ verify }) => !verify).map(({ save }) => save.name)
      applied.push({ ...result, sources, unverified })
    }
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error
    const file = files[error.manifestIndex]!
    throw manifestRefusal(error.faults.map((fault) => ({ file: file.name, ...fault, line: file.lineOf(fault.path) })))
  }
  const json = applied.map(toJson)
  const hasFailed = applied.some(({ sources }) => sources.some(({ outcome }) => outcome === 'failed'))
  for (const { unverified } of applied) {
    for (const name of unverified) {
      ctx.terminal.writeError(
        `${name}: recorded without the verification request, as the manifest says (verify: false).\n`,
      )
    }
  }
  return {
    json: json.length === 1 ? json[0] : json,
    text: (terminal) => applied.map((result) => toText(result, terminal)).join('\n'),
    exitStatus: hasFailed ? 1 : 0,
  }
}

async function saveSources(
  ctx: CliContext,
  dispatcher: DispatcherClient,
  { organization, webhookSources }: AppliedManifest,
): Promise<SourceResult[]> {
  const results: SourceResult[] = []
  for (let start = 0; start < webhookSources.length; start += SAVES_AT_ONCE) {
    const batch = webhookSources.slice(start, start + SAVES_AT_ONCE)
    results.push(
      ...(await Promise.all(batch.map(async (source) => await saveSource(ctx, dispatcher, organization.id, source)))),
    )
  }
  return results
}

async function saveSource(
  ctx: CliContext,
  dispatcher: DispatcherClient,
  organizationId: string,
  { id, save, verify }: AppliedManifest['webhookSources'][number],
): Promise<SourceResult> {
  const before = await findWebhookSource(ctx.database(), organizationId, id)
  try {
    const { isNew, source } = await dispatcher.saveWebhookSource(
      organizationId,
      id,
      save,
      verify ? 'if_changed' : 'never',
    )
    const isUnchanged =
      before?.updatedAt.toISOString() === source.updated_at && isSameTime(before.verifiedAt, source.verified_at)
    const outcome = isNew ? 'created' : isUnchanged ? 'unchanged' : 'changed'
    return { id, name: source.name, outcome, verified: source.verified_at !== null }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const verified = (before?.verifiedAt ?? null) !== null
    return { id, name: save.name, outcome: 'failed', verified, error: { ...error.extra, message: error.message } }
  }
}

function isSameTime(a: Date | null, b: string | null): boolean {
  return (a?.toISOString() ?? null) === b
}

function toJson({ organization, users, apiKeys, sources, workflows, sessions }: Applied): object {
  return {
    organization_id: organization.id,
    organization,
    users,
    api_keys: apiKeys,
    webhook_sources: sources,
    workflows,
    sessions,
  }
}

type Outcome = SourceResult['outcome']

const OUTCOME_COLOURS = { created: 'green', changed: 'yellow', unchanged: 'dim', failed: 'red' } as const

function toText({ organization, users, apiKeys, sources, workflows, sessions }: Applied, terminal: Terminal): string {
  const outcome = {
    title: 'OUTCOME',
    value: (row: { outcome: Outcome }) => row.outcome,
    colour: (row: { outcome: Outcome }) => OUTCOME_COLOURS[row.outcome],
  }
  const part = <Row extends { outcome: Outcome }>(
    title: string,
    rows: readonly Row[],
    columns: readonly { title: string; value: (row: Row) => string }[],
  ) => {
    if (rows.length === 0) return ''
    const [first, ...rest] = columns
    return `\n${paint(terminal, 'bold', title)}\n${renderTable<Row>(terminal, [first!, outcome, ...rest], rows, '')}`
  }
  const id = { title: 'ID', value: (row: { id: string }) => row.id }
  const name = { title: 'NAME', value: (row: { name: string }) => row.name }
  return [
    `${paint(terminal, 'bold', organization.name)}  ${organization.id}  ${organization.outcome}\n`,
    part('Users', users, [{ title: 'EMAIL', value: ({ email }) => email }]),
    part('API keys', apiKeys, [
      name,
      { title: 'MAY', value: ({ scopes, revoked }) => (revoked ? 'nothing: revoked' : scopes.join(', ')) },
      { title: 'KEY', value: ({ key, prefix }) => key ?? `${prefix}_… (shown only when it is made)` },
    ]),
    part('Webhook sources', sources, [name, id, { title: 'ENDPOINT', value: describeEndpoint }]),
    part('Workflows', workflows, [
      name,
      id,
      { title: 'HAS', value: ({ triggers, files }) => `${countOf(triggers, 'trigger')}, ${countOf(files, 'file')}` },
    ]),
    part('Sessions', sessions, [id, { title: 'STATE', value: ({ open }) => (open ? 'open' : 'closed') }]),
  ].join('')
}

function countOf(items: readonly unknown[], noun: string): string {
  return `${items.length} ${noun}${items.length === 1 ? '' : 's'}`
}

function describeEndpoint({ error, verified, outcome }: SourceResult): string {
  if (error) return error.message
  if (!verified) return 'not verified'
  return outcome === 'unchanged' ? 'confirmed earlier' : 'confirmed'
}
