import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'

/** The samples of a guide in Python. */
function samplesOf(guide: string): string[] {
  const text = readFileSync(join(import.meta.dirname, '../src/docs/guides', `${guide}.md`), 'utf8')
  return [...text.matchAll(/```python\n([^]*?)```/g)].map(([, code = '']) => code)
}

const timestamp = String(Math.floor(Date.now() / 1_000))
const id = '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'
const body = '{}'

/** The headers of a request that is signed with this secret. */
function sign(secret: string) {
  const hmac = (text: string) => createHmac('sha256', secret).update(text)
  return {
    'X-Delivery-Id': id,
    'X-Service-Timestamp': timestamp,
    'X-Service-Token': Buffer.from(`${timestamp}.${hmac(timestamp).digest('hex')}`).toString('base64'),
    'X-Service-Signature': `v1,${hmac(`${id}.${timestamp}.${body}`).digest('base64')}`,
  }
}

if (spawnSync('python3', ['--version']).status === 0)
  test('the checks in Python take what is signed with the secret, and nothing while it is empty', () => {
    const checks = `import sys
for line in sys.stdin:
    headers = json.loads(line)
    token = headers["X-Service-Token"]
    for secret in SECRET, "":
        signed = check_service_signature(headers, ${JSON.stringify(body)}.encode(), secret)
        print(check_service_token(token, secret), signed)
    print(is_authentic(token))`
    const server = /^HTTPServer.*$/m
    const samples = [...samplesOf('receiving'), ...samplesOf('rotating-a-secret')].map((code) =>
      code.replace(server, ''),
    )
    // The old secret as it is left after a rotation.
    const secrets = { SIGNING_SECRET: 'a secret', NEW_SIGNING_SECRET: 'a secret', OLD_SIGNING_SECRET: '' }
    const { stdout, stderr } = spawnSync('python3', ['-c', [...samples, checks].join('\n')], {
      input: [sign('a secret'), sign('')].map((headers) => `${JSON.stringify(headers)}\n`).join(''),
      encoding: 'utf8',
      env: { ...process.env, ...secrets },
    })
    const taken = ['True True', 'False False', 'True']
    const refused = ['False False', 'False False', 'False']
    expect(`${stderr}${stdout}`.trim().split('\n')).toEqual([...taken, ...refused])
  })

/** The seconds of the first `name=` in a text. */
function secondsOf(name: string, text: string): number {
  return Number(new RegExp(String.raw`\b${name}=(\d+)`).exec(text)?.[1])
}

test('the programs in Python wait longer for a response than the service for the end of a run', () => {
  const guide = readFileSync(join(import.meta.dirname, '../src/docs/guides/first-start.md'), 'utf8')
  const ofOperations = readFileSync(join(import.meta.dirname, '../../../packages/reference/src/samples.ts'), 'utf8')
  // Beside the wait, every response comes within 5 seconds.
  const longest = secondsOf('wait', guide) + 5
  for (const text of [guide, ofOperations]) expect(secondsOf('timeout', text)).toBeGreaterThan(longest)
})
