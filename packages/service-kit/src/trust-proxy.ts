import { splitList } from './split-list.ts'
import { compile as compileProxyList } from 'proxy-addr'

/**
 * The values of TRUST_PROXY that Express takes as its `trust proxy`: no proxy, a number of proxies, or their networks.
 */
export type TrustProxy = false | number | string[]

const EXPECTED = 'must be false, the number of proxies, or their networks'

/**
 * Reads TRUST_PROXY. `true` is refused: every caller could then send any address as its own in X-Forwarded-For.
 * @throws Error whose message continues the setting's name.
 */
export function parseTrustProxy(text: string): TrustProxy {
  if (text === 'false' || text === '0') return false
  if (/^[1-9]\d?$/.test(text)) return Number(text)
  if (text === 'true') throw new Error(`${EXPECTED}; with true, every caller could choose its own address`)
  const networks = splitList(text)
  try {
    compileProxyList(networks)
    if (networks.some(isAbbreviated)) throw new Error('a network is abbreviated')
  } catch {
    throw new Error(`${EXPECTED} (it is ${JSON.stringify(text)})`)
  }
  return networks
}

/**
 * Whether a network has the form of a number: the library takes `100`, a number of proxies that is too large, for
 * 0.0.0.100.
 */
function isAbbreviated(network: string): boolean {
  const [address = ''] = network.split('/')
  return /^\d/.test(address) && !address.includes(':') && !/^\d+(\.\d+){3}$/.test(address)
}
