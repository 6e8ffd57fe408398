import { registerHooks } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { hashNewPassword, verifyPassword } from './passwords.ts'

/** Much longer than a hash, also on a busy machine: it is what the turns multiply. */
const WORK_MS = 200

test('passwords that many strangers try at once are checked two at a time, each for a quarter of its turn', async () => {
  const begunMs: number[] = []
  const find = async () => {
    begunMs.push(performance.now())
    await sleep(WORK_MS)
    return undefined
  }
  const networks = Array.from({ length: 4 }, (_, index) => `198.51.100.${index}`)
  await Promise.all(
    networks.map((address) => verifyPassword({ address, userAgent: null, cookies: undefined }, 'wrong', find)),
  )
  // One turn, without its hash. A timer may end a millisecond early.
  expect(begunMs.at(-1)! - begunMs[0]!).toBeGreaterThan(4 * (WORK_MS - 1))
})

test('a password can be chosen after its check could not be loaded, such as without free file descriptors', async () => {
  const visitor = { address: '198.51.100.9', userAgent: null, cookies: undefined }
  const choose = () => hashNewPassword(visitor, 'password', 'several-unusual-words-of-mine', [])
  const hooks = registerHooks({
    load: (url, context, nextLoad) => {
      if (url.includes('zxcvbn')) throw new Error('EMFILE: too many open files')
      return nextLoad(url, context)
    },
  })
  await expect(choose()).rejects.toThrow('EMFILE')
  hooks.deregister()
  await expect(choose()).resolves.toMatch(/^\$argon2id\$/)
})
