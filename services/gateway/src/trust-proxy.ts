import { splitList } from '@workflow-service/service-kit'
import { compile as compileProxyList } from 'proxy-addr'

/** What Express takes as `trust proxy`: none, so many hops, or these networks. */
export type TrustProxy = false | number | string[]

/** TRUST_PROXY cannot be read; the message continues the setting's name. */
export class TrustProxySyntaxError extends Error {
  override name = 'TrustProxySyntaxError'
}

const HELP = 'must be false, the number of proxies, or their networks. Example: TRUST_PROXY=10.0.0.0/8'

/**
 * Reads TRUST_PROXY; empty is false. `true` is refused: it would take the caller's word for its own address.
 * @throws TrustProxySyntaxError saying what to write.
 */
export function parseTrustProxy(text: string): TrustProxy {
  const value = text.trim()
  if (value === '' || value === 'false' || value === '0') return false
  if (/^[1-9]\d?$/.test(value)) return Number(value)
  if (value === 'true') {
    throw new TrustProxySyntaxError(`must not be true: every caller could name any address as its own. It ${HELP}`)
  }
  const networks = splitList(value)
  try {
    compileProxyList(networks)
  } catch {
    throw new TrustProxySyntaxError(`${HELP} (it is ${JSON.stringify(value)})`)
  }
  return networks
}
