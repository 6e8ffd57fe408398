import { isIP } from 'node:net'
import { generate } from 'selfsigned'

export interface CertificateOptions {
  /**
   * Host names and IP addresses.
   * @default ['localhost', '127.0.0.1']
   */
  names?: string[]
  /** Valid until yesterday. */
  isExpired?: boolean
  /** Valid from tomorrow. */
  isNotYetValid?: boolean
  /**
   * Signs it with this certificate.
   * @default self-signed
   */
  issuer?: Certificate
}

/** Key and certificate as PEM, for `node:tls`. A client trusts a self-signed one given as its own `ca`. */
export interface Certificate {
  key: string
  cert: string
}

const DAY_MS = 86_400_000

/** Creates a certificate for a test server. With an EC key this takes a few milliseconds. */
export async function createCertificate(options: CertificateOptions = {}): Promise<Certificate> {
  const { names = ['localhost', '127.0.0.1'], isExpired = false, isNotYetValid = false, issuer } = options
  const from = Date.now() + (isNotYetValid ? DAY_MS : isExpired ? -3 * DAY_MS : -DAY_MS)
  const altNames = names.map((name) =>
    isIP(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  )
  const created = await generate([{ name: 'commonName', value: names[0] ?? 'localhost' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(from),
    notAfterDate: new Date(from + 2 * DAY_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames },
    ],
    ca: issuer,
  })
  return { key: created.private, cert: created.cert }
}
