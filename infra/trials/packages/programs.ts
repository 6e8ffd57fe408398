import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'

const PACKAGES = join(import.meta.dirname, '../../../packages')
const readmeOf = (name: string): string => readFileSync(join(PACKAGES, name, 'README.md'), 'utf8')
const secret = 'a secret'

/** The endpoint with the `Request` of the web, as the README has it. */
export const RECEIVER = (/### Next\n[^]*?```ts\n([^]*?)```/.exec(readmeOf('webhook-token'))?.[1] ?? '').replace(
  'process.env.SIGNING_SECRET',
  `'${secret}'`,
)

/** What `exercise` resolves with where everything works. */
export const EXPECTED = [
  'verification 204',
  'payload 200 thank you',
  'again 200 received before',
  'new 200 thank you',
  'tampered 401 wrong_signature',
  'run succeeded',
].join(', ')

const imports = `import { createServiceHeaders } from '@workflow-service/webhook-token'
import { WorkflowClient } from '@workflow-service/client'
`

/** Sends requests to the receiver, starts a workflow and waits for its run. */
const EXERCISE = `
export async function exercise(baseUrl) {
  const payload = JSON.stringify({ order_id: 'A-1', customer: 'Ada', total: 3, express: true })
  const post = async (what, deliveryId, body, sent = body) => {
    const headers = await createServiceHeaders('${secret}', { deliveryId, body })
    const answer = await POST(new Request('http://localhost/webhook', { method: 'POST', headers, body: sent }))
    return [what, answer.status, await answer.text()].filter(Boolean).join(' ')
  }
  const results = [
    await post('verification', 'v', '{"type":"service.webhook.verification"}'),
    await post('payload', 'a', payload),
    await post('again', 'a', payload),
    await post('new', 'b', payload),
    await post('tampered', 'c', payload, payload.replace('A-1', 'A-2')),
  ]
  const client = new WorkflowClient({ apiKey: 'wfk_x', baseUrl })
  const started = await client.workflows.start('w', { context: 'go' })
  const run = await client.runs.wait(started.id)
  return [...results, 'run ' + run.status].join(', ')
}
`

const receiver = stripTypeScriptTypes(RECEIVER)

/** One module that imports both packages by their names, with \`exercise\`. */
export const MODULE = imports + receiver + EXERCISE

/** The same for \`require\`. */
export const COMMON_JS = MODULE.replaceAll(/import (\{[^}]*\}) from ('[^']*')/g, 'const $1 = require($2)').replaceAll(
  /^export /gm,
  '',
)

/** For the compiler: the examples of both READMEs, each a module. */
export const EXAMPLES = [
  RECEIVER,
  ...[...readmeOf('client').matchAll(/```ts\n([^]*?)```/g)].slice(1).map(([, code = '']) => code),
]
