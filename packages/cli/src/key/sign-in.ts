import { credentialsFile, deleteCredentials, hasDatabase, saveCredentials } from '../access.ts'
import type { CliContext, KeyContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import type { CommandResult } from '../command-result.ts'
import { createClient, explainApiError } from './key-context.ts'

/** `wf login [URL]`: checks the key before it is saved. */
export async function login(ctx: CliContext, given: string | undefined): Promise<CommandResult> {
  const url = given ?? ctx.env['WF_API_URL']
  if (!url) throw new UsageError('Name the address of the service: wf login https://api.example.com')
  const { ask } = ctx.terminal
  const key = (ask ? await ask('API key (wfk_…): ', { isSecret: true }) : await ctx.readInput()).trim()
  if (key === '') throw new CliError('No key was given: enter it, or write it to standard input.')
  const organization = await createClient(url, key)
    .organization.get()
    .catch((error: unknown) => {
      throw explainApiError(error, url) ?? error
    })
  const file = saveCredentials(ctx.env, { url, key })
  const note = hasDatabase(ctx.env)
    ? 'Here, wf finds the settings of a database, and uses that instead: set WF_API_KEY to use a key.\n'
    : ''
  return {
    json: { organization, url, file },
    text: () => `Signed in to ${organization.name} at ${url}. The key is saved in ${file}.\n${note}`,
  }
}

export async function logout(ctx: CliContext): Promise<CommandResult> {
  const file = deleteCredentials(ctx.env)
  const isSet = Boolean(ctx.env['WF_API_KEY'])
  return {
    json: { deleted: file !== undefined },
    text: () =>
      `${file === undefined ? `No key is saved in ${credentialsFile(ctx.env)}.` : `The key in ${file} is deleted. It is still valid: an admin revokes it in the application.`}${isSet ? ' WF_API_KEY is still set.' : ''}\n`,
  }
}

export async function whoami({ client, url }: KeyContext): Promise<CommandResult> {
  const organization = await client.organization.get()
  return { json: { organization, url }, text: () => `${organization.name}  ${organization.id}\n${url}\n` }
}
