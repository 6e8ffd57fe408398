import { expect, test } from '@jest/globals'
import { hashNewPassword, verifyPassword } from './passwords.ts'

const visitor = (address: string) => ({ address, userAgent: null, cookies: undefined })

test('passwords that many strangers try at once take at most half of a processor', async () => {
  const passwordHash = await hashNewPassword(visitor('192.0.2.1'), 'password', 'orbit-velvet-cactus-41', [])
  const find = () => Promise.resolve({ passwordHash })
  const networks = Array.from({ length: 10 }, (_, index) => visitor(`198.51.100.${index}`))
  const [startedMs, cpu] = [performance.now(), process.cpuUsage()]
  await Promise.all(networks.map((network) => verifyPassword(network, 'wrong', find)))
  const { user, system } = process.cpuUsage(cpu)
  expect(performance.now() - startedMs).toBeGreaterThan((1.5 * (user + system)) / 1_000)
})
