import { UUID_PATTERN } from '@workflow-service/contract'
import { deleteDelivery, deleteRun as deleteRunRows, eraseUser, findUsersOfPerson } from '@workflow-service/database'
import type { CommonOptions } from '../cli-command.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import type { CommandResult } from '../command-result.ts'
import { confirm } from './confirm.ts'
import { findId, findOrganization } from './find.ts'

type Options = CommonOptions & { readonly yes?: boolean }

/** `wf people erase PERSON` */
export async function erasePerson(ctx: OperatorContext, given: string, options: Options): Promise<CommandResult> {
  const only = options.organization === undefined ? undefined : await findOrganization(ctx, options.organization)
  const person = UUID_PATTERN.test(given) ? { id: given } : { email: given }
  const found = await findUsersOfPerson(ctx.db, person)
  const users = found.filter(({ organizationId }) => only === undefined || organizationId === only.id)
  if (users.length === 0) throw new CliError(`There is no user ${given}. List them with wf users list.`)
  const names = users
    .map(
      ({ email, organizationName, isRemoved }) =>
        `${email} of ${organizationName}${isRemoved ? ' (removed before)' : ''}`,
    )
    .join(', ')
  await confirmErasure(ctx, options, `This deletes ${names}, and the name in the audit log. It cannot be undone.`)
  for (const user of users) {
    const outcome = await eraseUser(ctx.db, user)
    if (outcome === 'session_busy') {
      throw new CliError(`A run that may have read a decision of ${user.email} is under way. Repeat this in a minute.`)
    }
    if (outcome === 'last_owner') {
      const { organizationId, organizationName: name } = user
      throw new CliError(
        `${user.email} is the last owner of ${name}. Make another one first (wf setup-link ${organizationId}), or delete ${name}; then repeat this.`,
      )
    }
  }
  return {
    json: { erased: users.map(({ id, organizationId }) => ({ user_id: id, organization_id: organizationId })) },
    text: () =>
      `Erased: ${names}. Texts that customers sent may still name the person: find them with the search of runs, and delete them with wf runs delete.\n`,
  }
}

export async function deleteRun(ctx: OperatorContext, prefix: string, options: Options): Promise<CommandResult> {
  const id = await findId(ctx, 'run', prefix, options.organization)
  await confirmErasure(ctx, options, `This deletes run ${id} with its journal and deliveries. It cannot be undone.`)
  const outcome = await deleteRunRows(ctx.db, id)
  if (outcome === 'not_found') throw new CliError(`There is no run ${id}.`)
  if (outcome === 'not_ended') throw new CliError(`Run ${id} has not ended. End it first: wf runs cancel ${id}.`)
  if (outcome === 'session_busy') {
    throw new CliError(
      `A later run of the session, which may have read run ${id}, is under way. Repeat this in a minute.`,
    )
  }
  return { json: { deleted: id }, text: () => `Run ${id} is deleted, with its journal and deliveries.\n` }
}

/** `wf deliveries delete ID` */
export async function deleteOneDelivery(ctx: OperatorContext, id: string, options: Options): Promise<CommandResult> {
  await confirmErasure(ctx, options, `This deletes delivery ${id}. It cannot be undone.`)
  const outcome = await deleteDelivery(ctx.db, id)
  if (outcome.kind === 'not_found') throw new CliError(`There is no delivery ${id}.`)
  if (outcome.kind === 'in_flight') throw new CliError(`Delivery ${id} is being sent. Try again in a minute.`)
  if (outcome.kind === 'of_run') {
    throw new CliError(`The journal of its run has the payload, too. Delete both: wf runs delete ${outcome.runId}`)
  }
  return { json: { deleted: id }, text: () => `Delivery ${id} is deleted.\n` }
}

async function confirmErasure(ctx: OperatorContext, options: Options, what: string): Promise<void> {
  await confirm(ctx, options, { what, word: 'erase', refusal: 'Nothing was deleted.' })
}
