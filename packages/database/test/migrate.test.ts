import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { migrate } from '../src/index.ts'

const database = useTestDatabase()

test('applies nothing to an up-to-date database', async () => {
  expect(await migrate({ databaseUrl: database.url })).toEqual({ applied: [] })
})

test('has closed its connection when it resolves', async () => {
  const url = new URL(database.url)
  const { port, hostname } = url
  let [opened, open] = [0, 0]
  const proxy = createServer((socket) => {
    opened++
    open++
    const server = connect(Number(port), hostname)
    socket.pipe(server).pipe(socket)
    socket.on('end', () => open--)
    for (const each of [socket, server]) each.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  url.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  await migrate({ databaseUrl: url.href })
  expect([opened, open]).toEqual([1, 0])
  proxy.close()
})

test('rejects with the reason when it cannot connect', async () => {
  const url = new URL(database.url)
  url.password = 'wrong'
  await expect(migrate({ databaseUrl: url.href })).rejects.toMatchObject({ code: '28P01' })
  url.port = '1'
  await expect(migrate({ databaseUrl: url.href })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
