import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createCertificate } from './create-certificate.ts'

describe('createCertificate', () => {
  test('is valid for the given names and addresses only', async () => {
    const { cert } = await createCertificate({ names: ['hooks.acme.test', '127.0.0.1', '::1'] })
    const certificate = new X509Certificate(cert)
    expect(certificate.checkHost('hooks.acme.test')).toBe('hooks.acme.test')
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(certificate.checkIP('::1')).toBe('::1')
    expect(certificate.checkHost('acme.test')).toBeUndefined()
  })

  test('is valid now, or expired, or not yet valid', async () => {
    const now = Date.now()
    const validity = []
    for (const options of [{}, { isExpired: true }, { isNotYetValid: true }]) {
      const { validFromDate, validToDate } = new X509Certificate((await createCertificate(options)).cert)
      validity.push([validFromDate.getTime() < now, validToDate.getTime() > now])
    }
    expect(validity).toEqual([
      [true, true],
      [true, false],
      [false, true],
    ])
  })

  test('is signed by the given issuer', async () => {
    const issuer = await createCertificate({ names: ['Authority'] })
    const issued = new X509Certificate((await createCertificate({ issuer })).cert)
    expect(issued.verify(new X509Certificate(issuer.cert).publicKey)).toBe(true)
    expect(issued.checkIssued(new X509Certificate(issuer.cert))).toBe(true)
  })
})
