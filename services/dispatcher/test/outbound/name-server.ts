import { createSocket } from 'node:dgram'
import type { Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import * as dnsPacket from 'dns-packet'

/** A query as it arrived. */
type Question = { name: string; type: string; over: 'udp' | 'tcp' }

/**
 * The reply: records; an error code; `silence`; `garbage` (bytes that are no valid answer); `truncated` over UDP, so
 * that the client repeats the query over TCP; or one of these after a delay.
 */
export type Reply =
  | { records: dnsPacket.Answer[] }
  | { code: 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED' | 'FORMERR' | 'NOTIMP' }
  | 'silence'
  | 'garbage'
  | 'truncated'
  | { afterMs: number; reply: Reply }

/** Returns the reply to a query; `before` counts the earlier identical queries. */
export type Zone = (query: Question, before: number) => Reply

export interface NameServer {
  /** For `createResolver({ servers: [address] })`. */
  address: string
  questions: Question[]
  close(): Promise<void>
}

const errorBits = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5, FORMERR: 1, NOTIMP: 4 }

/** Starts a name server over UDP and TCP, by default on a free port of 127.0.0.1. */
export async function nameServer(zone: Zone, { host = '127.0.0.1', port = 0 } = {}): Promise<NameServer> {
  const questions: Question[] = []
  const sockets = new Set<Socket>()
  let isClosed = false

  function respond(bytes: Buffer, over: 'udp' | 'tcp', send: (answer: Buffer) => void): void {
    const query = dnsPacket.decode(bytes)
    const [asked] = query.questions ?? []
    if (asked === undefined) return
    const repeated: dnsPacket.Question = asked
    const question: Question = { name: asked.name, type: asked.type, over }
    const before = questions.filter((each) => each.name === question.name && each.type === question.type).length
    questions.push(question)
    reply(zone(question, before))

    function reply(said: Reply): void {
      if (said === 'silence') return
      if (said === 'garbage') {
        send(Buffer.concat([bytes.subarray(0, 2), Buffer.from([0x81, 0x80]), Buffer.alloc(40, 0xff)]))
        return
      }
      if (typeof said === 'object' && 'afterMs' in said) {
        setTimeout(() => reply(said.reply), said.afterMs).unref()
        return
      }
      const isTruncated = said === 'truncated' && over === 'udp'
      const code = typeof said === 'object' && 'code' in said ? errorBits[said.code] : 0
      const recursionAvailable = 0x80
      send(
        dnsPacket.encode({
          type: 'response',
          id: query.id ?? 0,
          flags:
            dnsPacket.RECURSION_DESIRED | recursionAvailable | code | (isTruncated ? dnsPacket.TRUNCATED_RESPONSE : 0),
          questions: [repeated],
          answers: typeof said === 'object' && 'records' in said ? said.records : [],
        }),
      )
    }
  }

  const tcp = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    let pending = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const end = 2 + pending.readUInt16BE(0)
        const query = Buffer.from(pending.subarray(2, end))
        pending = pending.subarray(end)
        respond(query, 'tcp', (answer) => {
          const length = Buffer.alloc(2)
          length.writeUInt16BE(answer.length)
          socket.write(Buffer.concat([length, answer]))
        })
      }
    })
  })
  const udp = await listen()

  /** Listens with UDP and TCP on the same port; tries another port if TCP's is in use. */
  async function listen(): Promise<UdpSocket> {
    const socket = createSocket('udp4')
    socket.bind(port, host)
    await once(socket, 'listening')
    tcp.listen(socket.address().port, host)
    try {
      await once(tcp, 'listening')
      return socket
    } catch (error) {
      socket.close()
      if (port !== 0) throw error
      return listen()
    }
  }

  udp.on('message', (bytes, from) =>
    respond(bytes, 'udp', (answer) => {
      // A delayed reply may come after the end of its test.
      if (!isClosed) udp.send(answer, from.port, from.address)
    }),
  )

  return {
    address: `${host}:${udp.address().port}`,
    questions,
    async close() {
      isClosed = true
      for (const socket of sockets) socket.destroy()
      udp.close()
      tcp.close()
      await once(tcp, 'close')
    },
  }
}

/** An A or AAAA record, depending on the address. */
export function address(name: string, value: string): dnsPacket.Answer {
  return { type: value.includes(':') ? 'AAAA' : 'A', name, ttl: 60, data: value }
}

export function alias(name: string, target: string): dnsPacket.Answer {
  return { type: 'CNAME', name, ttl: 60, data: target }
}

/** A zone with these names and their addresses, and no other name. */
export function zoneOf(names: Record<string, string[]>): Zone {
  return ({ name, type }) => {
    const addresses = names[name]
    if (addresses === undefined) return { code: 'NXDOMAIN' }
    const records = addresses.map((each) => address(name, each)).filter((record) => record.type === type)
    return { records }
  }
}
