import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { runProgram } from '@workflow-service/testkit'

// Without root, a user namespace gives the needed rights, if the machine allows user namespaces.
const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
const namespace = [...user, '--net', '--mount']
const probe = [
  'ip link add here type veth peer name there',
  'ip -6 addr add 2606:4700::1/64 dev here nodad',
  'command -v nsenter',
  'unshare --net true',
  'mount --bind /etc/hosts /etc/resolv.conf',
].join(' && ')
const isPossible = spawnSync('unshare', [...namespace, 'sh', '-c', probe]).status === 0

const reached = (at: string): object => ({ kind: 'answered', status: 200, text: `reached at ${at}` })
const refusedName = (at: string): object => ({
  kind: 'refused',
  internalDetail: expect.stringContaining(at),
})
const refused = (why: string): object => ({ kind: 'refused', detail: expect.stringContaining(why) })

async function findings(): Promise<unknown> {
  const program = join(import.meta.dirname, 'namespace-program.ts')
  return JSON.parse(await runProgram('unshare', [...namespace, process.execPath, program]))
}

describe('with no subnet allowed', () => {
  const where = isPossible ? 'in its own network namespace' : 'not run: this machine allows no network namespaces'
  test(`only public addresses are reached, with the system's name servers read every minute (${where})`, async () => {
    const expected = {
      ipv4: reached('::ffff:93.184.215.14'),
      ipv6: reached('2606:4700::14'),
      both: reached('::ffff:93.184.215.14'),
      turningFirst: reached('::ffff:93.184.215.14'),
      turningThen: refusedName('127.0.0.1'),
      own: refused('93.184.215.1 is an address of the service itself'),
      ownName: refusedName('93.184.215.1'),
      unnamedIpv4: refusedName('93.184.216.1 is an address of the service itself'),
      unnamedIpv6: refusedName('2606:4701::1 is an address of the service itself'),
      unnamedName: refusedName('93.184.216.1'),
      loopback: refused('127.0.0.1'),
      silent: { kind: 'timed_out', phase: 'connect' },
      questionsForTurning: 4,
      systemFirst: ['192.0.2.1'],
      systemWithinTheMinute: ['192.0.2.1'],
      systemAfterwards: ['192.0.2.2'],
      trapped: 0,
    }
    expect(isPossible ? await findings() : expected).toMatchObject(expected)
  })
})
