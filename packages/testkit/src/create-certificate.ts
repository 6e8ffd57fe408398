import { isIP } from 'node:net'
import { generate } from 'selfsigned'

/** For whom a certificate is, and what is wrong with it. */
export interface CertificateOptions {
  /** Host names and addresses; default localhost and 127.0.0.1. */
  names?: string[]
  /** Valid until yesterday. */
  expired?: boolean
  /** Valid from tomorrow. */
  notYetValid?: boolean
  /** Signed by this one instead of by itself. */
  issuer?: Certificate
}

/** PEM, as `node:tls` takes it. As its own `ca` a client trusts a self-signed one. */
export interface Certificate {
  key: string
  cert: string
}

const dayMs = 86_400_000

/** Makes a certificate for a test server: an EC key, so it takes a few milliseconds. */
export async function createCertificate(options: CertificateOptions = {}): Promise<Certificate> {
  const { names = ['localhost', '127.0.0.1'], expired = false, notYetValid = false, issuer } = options
  const from = Date.now() + (notYetValid ? dayMs : expired ? -3 * dayMs : -dayMs)
  const altNames = names.map((name) =>
    isIP(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  )
  const made = await generate([{ name: 'commonName', value: names[0] ?? 'localhost' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(from),
    notAfterDate: new Date(from + 2 * dayMs),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames },
    ],
    ca: issuer,
  })
  return { key: made.private, cert: made.cert }
}
