// Runs in its own network and mount namespaces, which reach only what is set up here: an endpoint in a second namespace
// at addresses that look public. So it can test the default, with no subnet allowed, against addresses that are
// classified as public. Prints its findings as JSON.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@workflow-service/testkit'
import { createResolver } from '../../src/outbound/resolver.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import { address, nameServer } from './name-server.ts'

const own = '93.184.215.1'
/** Of an interface that has no carrier, which Node does not name. */
const unnamedIpv4 = '93.184.216.1'
const unnamedIpv6 = '2606:4701::1'
const publicIpv4 = '93.184.215.14'
const publicIpv6 = '2606:4700::14'

function run(command: string): void {
  const [program = '', ...args] = command.split(' ')
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command}: ${stderr}`)
}

/** The endpoint: a server in its own namespace that answers with the address at which it was reached. */
const server = `
  const { createServer } = require('node:http')
  createServer((request, response) => request.resume().on('end', () => response.end('reached at ' + request.socket.localAddress)))
    .listen(80, '::', () => console.log('listening'))
`
const endpoint = spawn('unshare', ['--net', process.execPath, '--eval', server], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
process.once('exit', () => endpoint.kill())
await once(endpoint.stdout, 'data')
const inEndpoint = `nsenter --net=/proc/${endpoint.pid}/ns/net`

run('ip link set lo up')
run('ip link add here type veth peer name there')
run(`ip link set there netns ${endpoint.pid}`)
run(`ip addr add ${own}/24 dev here`)
run('ip -6 addr add 2606:4700::1/64 dev here nodad')
run('ip link set here up')
run('ip link add idle type veth peer name nowhere')
run(`ip addr add ${unnamedIpv4}/24 dev idle`)
run(`ip -6 addr add ${unnamedIpv6}/64 dev idle nodad`)
run('ip link set idle up')
run(`${inEndpoint} ip addr add ${publicIpv4}/24 dev there`)
run(`${inEndpoint} ip -6 addr add ${publicIpv6}/64 dev there nodad`)
run(`${inEndpoint} ip link set there up`)
// Node names no interface before it has a carrier, which takes a moment.
await waitUntil(() =>
  Object.values(networkInterfaces()).some((entries) => entries?.some((each) => each.address === own)),
)

// The attacker's target: a service of this machine that listens on every address.
let trapped = 0
const trap = createServer((_, response) => {
  trapped++
  response.end('internal')
})
trap.listen(80, '::')
await once(trap, 'listening')

const dns = await nameServer(({ name, type }, before) => {
  const records = (ipv4: string, ipv6?: string) => ({
    records: type === 'A' ? [address(name, ipv4)] : ipv6 === undefined ? [] : [address(name, ipv6)],
  })
  if (name === 'both.example.com') return records(publicIpv4, publicIpv6)
  if (name === 'turning.example.com') return records(before === 0 ? publicIpv4 : '127.0.0.1')
  if (name === 'own.example.com') return records(own)
  if (name === 'unnamed.example.com') return records(unnamedIpv4)
  if (name === 'silent.example.com') return records('93.184.215.99')
  return { code: 'NXDOMAIN' as const }
})
const resolver = createResolver({ servers: [dns.address] })
const send = createSendRequest({ resolver })
const post = (host: string, deadlineMs = 10_000) =>
  send({ url: `http://${host}/`, body: '{}', headers: {}, deadlineMs })

// The system's name servers: only this namespace sees this resolv.conf.
const folder = mkdtempSync(join(tmpdir(), 'namespace-'))
const resolvConf = join(folder, 'resolv.conf')
writeFileSync(resolvConf, 'nameserver 127.0.0.1\n')
run(`mount --bind ${resolvConf} /etc/resolv.conf`)
const systems = await Promise.all(
  ['127.0.0.1', '127.0.0.2'].map((host, index) =>
    nameServer(({ name, type }) => ({ records: type === 'A' ? [address(name, `192.0.2.${index + 1}`)] : [] }), {
      host,
      port: 53,
    }),
  ),
)
let nowMs = 0
const system = createResolver({ now: () => nowMs })
const resolve = async () => {
  const found = await system.resolve('hooks.example.com', new AbortController().signal)
  return Array.isArray(found) ? found : found.detail
}
const systemFirst = await resolve()
writeFileSync(resolvConf, 'nameserver 127.0.0.2\n')
nowMs = 60_000
const systemWithinTheMinute = await resolve()
nowMs = 60_001
const systemAfterwards = await resolve()

const findings = {
  systemFirst,
  systemWithinTheMinute,
  systemAfterwards,
  ipv4: await post(publicIpv4),
  ipv6: await post(`[${publicIpv6}]`),
  both: await post('both.example.com'),
  turningFirst: await post('turning.example.com'),
  turningThen: await post('turning.example.com'),
  own: await post(own),
  ownName: await post('own.example.com'),
  unnamedIpv4: await post(unnamedIpv4),
  unnamedIpv6: await post(`[${unnamedIpv6}]`),
  unnamedName: await post('unnamed.example.com'),
  loopback: await post('127.0.0.1'),
  silent: await post('silent.example.com', 1_000),
  questionsForTurning: dns.questions.filter(({ name }) => name === 'turning.example.com').length,
  trapped,
}
process.stdout.write(JSON.stringify(findings))

system.close()
resolver.close()
trap.close()
await Promise.all([dns, ...systems].map((each) => each.close()))
rmSync(folder, { recursive: true })
endpoint.kill()
