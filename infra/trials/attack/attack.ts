import { connect, type Socket } from 'node:net'
import type { ServiceName } from '../shared/system.ts'
import type { AttackedServices, AttackTarget } from './target.ts'

/** Notes a violation unless the expectation is met. */
export type Expect = (isMet: boolean, violation: string) => void

export interface AttackOptions {
  /** How long an attack goes on that repeats its requests. */
  readonly seconds: number
  readonly expect: Expect
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
  /** Inserts data before anything is measured. */
  prepare?(target: AttackTarget): Promise<void>
  /**
   * Sends as much as `run`, but what any customer may send: what the victim notices of it is the machine's share, on
   * which services and attacker compete for the same processors.
   */
  sendOrdinary?(target: AttackTarget, options: Pick<AttackOptions, 'seconds'>): Promise<void>
  /** Resolves to a summary with counts. */
  run(target: AttackTarget, options: AttackOptions): Promise<string>
  /** Checks what is left of the attack when the victim is no longer measured. */
  checkAfterwards?(target: AttackTarget, expect: Expect): Promise<void>
}

/** Opens a connection and writes to it. `closed` resolves to everything received when the connection has closed. */
export function openSocket(url: string, bytes: string | Buffer = ''): { socket: Socket; closed: Promise<string> } {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  let received = ''
  const { promise: closed, resolve } = Promise.withResolvers<string>()
  socket.setEncoding('utf8').on('data', (text: string) => (received += text))
  socket.on('error', () => {}).once('close', () => resolve(received))
  socket.write(bytes)
  return { socket, closed }
}

/** The lines of a request's head, with the blank line after them. */
export function toHead(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}
