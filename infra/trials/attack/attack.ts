import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceName } from '../shared/system.ts'
import type { AttackedServices, AttackTarget } from './target.ts'

/** What an attack gets from the trial that runs it. */
export interface Attacking {
  readonly target: AttackTarget
  /** How long an attack goes on that repeats its requests. */
  readonly seconds: number
  /** Notes a violation unless the expectation is met. */
  readonly expect: (isMet: boolean, violation: string) => void
  /**
   * Measures the victim while the attacker sends as much as in the attack, but what any customer may send: what the
   * victim notices of it is the machine's share, on which services and attacker compete for the same processors. Call
   * it before `attack`, and after inserting data.
   */
  readonly sendOrdinary: (send: () => Promise<unknown>) => Promise<void>
  /** Measures the victim while the attacker attacks. */
  readonly attack: <Result>(send: () => Promise<Result>) => Promise<Result>
}

/** One attack: what it sends, and what it expects of the services beyond an unharmed victim. */
export interface Attack {
  readonly name: string
  readonly services?: AttackedServices
  /** Services that the attack itself ends, and whose process id therefore may change. */
  readonly ends?: readonly ServiceName[]
  /**
   * False where the attack takes a resource that all organizations share, such as file descriptors: the victim may wait
   * and be refused then, but no accepted start of it may be lost.
   */
  readonly checksLatency?: boolean
  /**
   * Whether it attacks the application: the victim may not notice more than twice its latency
   * (`MAX_APPLICATION_RATIO`).
   */
  readonly isOnApplication?: boolean
  /** Attacks once. Resolves to a summary with counts. */
  run(attacking: Attacking): Promise<string>
}

/** Opens a connection, writes to it, and drops what it receives. */
export function openSocket(url: string, bytes = ''): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
    .on('error', () => {})
    .resume()
  socket.write(bytes)
  return socket
}

/** Opens connections, writes the bytes to each, and keeps them open. */
export async function holdConnections(
  url: string,
  { count, seconds, reads = true }: { readonly count: number; readonly seconds: number; readonly reads?: boolean },
  bytesOf: (n: number) => string = () => '',
): Promise<void> {
  const sockets = Array.from({ length: count }, (_, n) => openSocket(url, bytesOf(n)))
  if (!reads) for (const socket of sockets) socket.pause()
  await sleep(seconds * 1_000)
  for (const socket of sockets) socket.destroy()
}

/** The lines of a request's head, with the blank line after them. */
export function toHead(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** An object with the fields `PREFIX0`, `PREFIX1`, … */
export function manyFields<Value>(prefix: string, count: number, value: Value): Record<string, Value> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, value]))
}
