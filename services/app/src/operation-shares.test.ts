import { describe, expect, test } from '@jest/globals'
import type { Principal, Visitor } from './auth/principal.ts'
import { createOperationShares } from './operation-shares.ts'

const person = (organizationId: string, userId: string) => ({ organizationId, userId, address: '' }) as Principal
const stranger = (address: string): Visitor => ({ address, userAgent: null, cookies: undefined })

/** Shares, and the requests that are being answered, in the order in which their turns came. */
function startRequests() {
  const shares = createOperationShares({ databasePoolSize: 10 })
  const begun: { readonly name: string; readonly end: () => void }[] = []
  const send = async (name: string, operationId: string, caller: Visitor | Principal, target = '/'): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    await shares.run(operationId, caller, target, () => {
      begun.push({ name, end: resolve })
      return promise
    })
  }
  const names = async (): Promise<string[]> => {
    await new Promise(setImmediate)
    return begun.map(({ name }) => name)
  }
  const endAll = async (requests: readonly Promise<void>[]): Promise<void> => {
    const pending = new Set(requests)
    for (const each of requests) void each.catch(() => {}).then(() => pending.delete(each))
    while (pending.size > 0) {
      for (const request of begun) request.end()
      await names()
    }
    await Promise.all(requests)
  }
  return { begun, send, names, endAll }
}

describe('the shares of operations', () => {
  test('leave turns to other organizations, and in an organization to other people', async () => {
    const { begun, send, names, endAll } = startRequests()
    const requests = Array.from({ length: 20 }, () => send('a1', 'listRuns', person('a', '1')))
    requests.push(send('a2', 'listRuns', person('a', '2')), send('b', 'listRuns', person('b', '3')))
    expect(await names()).toEqual(['a1', 'a1', 'a2', 'b'])
    begun[0]?.end()
    expect(await names()).toEqual(['a1', 'a1', 'a2', 'b', 'a1'])
    await endAll(requests)
  })

  test('let one heavy operation of an organization run at a time, beside its small ones and the heavy ones of others', async () => {
    const { begun, send, names, endAll } = startRequests()
    const requests = ['1', '2'].map((userId) => send(`export ${userId}`, 'exportManifest', person('a', userId)))
    requests.push(send('a', 'listRuns', person('a', '1')), send('b', 'getUsage', person('b', '3')))
    expect((await names()).toSorted()).toEqual(['a', 'b', 'export 1'])
    begun[0]?.end()
    while ((await names()).length < 4) await new Promise((resolve) => setTimeout(resolve, 1))
    expect((await names()).at(-1)).toBe('export 2')
    await endAll(requests)
  })

  test('count a list as heavy when it is searched', async () => {
    const { send, names, endAll } = startRequests()
    const owner = person('a', '1')
    const requests = ['listRuns', 'listDeliveries'].map((id) => send(id, id, owner, '/?limit=9&search=needle'))
    requests.push(send('not searched', 'listRuns', owner, '/?search='))
    requests.push(send('log', 'listAllDeliveries', owner, '/?source_id=x'))
    expect((await names()).toSorted()).toEqual(['listRuns', 'log', 'not searched'])
    requests.push(send('searched log', 'listAllDeliveries', person('b', '2'), '/?source_id=x&search=needle'))
    requests.push(send('export', 'exportManifest', person('b', '2')))
    expect(await names()).not.toContain('export')
    await endAll(requests)
  })

  test('keep no turn of reads while an endpoint or a hash is waited for, and let few strangers of a network sign in at once', async () => {
    const { send, names, endAll } = startRequests()
    const requests = Array.from({ length: 60 }, () => send('save', 'saveWebhookSource', person('a', '1')))
    const strangers = Array.from({ length: 400 }, (_, index) => stranger(`203.0.113.${index % 20}`))
    requests.push(...strangers.map((each) => send('sign-in', 'signIn', each)))
    requests.push(send('save', 'saveWebhookSource', person('b', '2')), send('read', 'listRuns', person('a', '1')))
    expect((await names()).slice(-2)).toEqual(['save', 'read'])
    expect((await names()).filter((name) => name === 'sign-in')).toHaveLength(200)
    await endAll(requests)
  })

  test('let what waited for an endpoint read in turn with other requests', async () => {
    const shares = createOperationShares({ databasePoolSize: 10 })
    const begun: string[] = []
    const end = Promise.withResolvers<void>()
    const read = async (organizationId: string) =>
      await shares.inTurn(person(organizationId, organizationId), async () => {
        begun.push(organizationId)
        await end.promise
      })
    const reads = [...Array.from({ length: 20 }, () => read('a')), read('b')]
    await new Promise(setImmediate)
    expect(begun).toEqual(['a', 'a', 'b'])
    end.resolve()
    await Promise.all(reads)
    expect(begun).toHaveLength(21)
  })

  test('count the networks of one IPv6 subscriber as one, so that it leaves turns to others', async () => {
    const { send, names, endAll } = startRequests()
    // As many as sign in at once, and as many as wait.
    const subscriber = Array.from({ length: 800 }, (_, index) => stranger(`2001:db8:7:${index.toString(16)}::1`))
    const requests = subscriber.map((each) => send('flood', 'signIn', each).catch(() => {}))
    requests.push(send('other', 'signIn', stranger('2001:db8:8::1')))
    expect(await names()).toEqual([...Array.from({ length: 10 }, () => 'flood'), 'other'])
    await endAll(requests)
    expect(await names()).toHaveLength(211)
  })

  test('let heavy requests of an organization wait before their bodies are read, and refuse them when many wait', async () => {
    const shares = createOperationShares({ databasePoolSize: 10 })
    expect(shares.admit('listRuns', person('a', '1'), '/')).toBeUndefined()
    const admitted = Array.from({ length: 43 }, () => shares.admit('saveFile', person('a', '1'), '/'))
    await expect(shares.admit('saveFile', person('a', '2'), '/')).rejects.toMatchObject({
      status: 503,
      code: 'service_unavailable',
    })
    await shares.admit('saveFile', person('b', '3'), '/')
    for (const each of admitted) (await each)!()
  })

  const READING_JOURNALS = [
    'getRun',
    'getRunPrompts',
    'getRulesDraft',
    'approveDelivery',
    'declineDelivery',
    'cancelRun',
  ]
  test.each(READING_JOURNALS)('count %s as heavy, which reads a journal', async (id) => {
    const release = await createOperationShares({ databasePoolSize: 10 }).admit(id, person('a', '1'), '/')
    expect(release).toEqual(expect.any(Function))
  })
})
