import { type Customer, createCustomer } from '@workflow-service/bench/customer'
import type { Environment, Service } from '@workflow-service/bench/environment'

/** What the victim sends: 20 reads and 10 starts per second. */
export interface VictimLoad {
  readonly gatewayUrl: string
  readonly workflowId: string
  readonly apiKey: string
}

/** What the victim noticed. */
export interface VictimFigures {
  /** Response times of GET /v1/organization. */
  readonly readsMs: readonly number[]
  /** From the request of a start until its payload is at the endpoint. */
  readonly startsMs: readonly number[]
  /** Requests that were not answered as expected, and accepted starts whose payload never arrived or arrived twice. */
  readonly errors: readonly string[]
}

/** An organization that is not attacked itself, with a light, steady load. */
export interface Victim extends Customer {
  startLoad(gateway: Service): Promise<void>
  /** Stops the load when all its payloads have arrived, or 15 s later. */
  stopLoad(): Promise<VictimFigures>
}

/** Starts the victim's process and creates its organization, webhook source and workflow. */
export async function createVictim(environment: Environment, dispatcher: Service): Promise<Victim> {
  const { url } = await environment.startScript(import.meta.resolve('./victim-process.ts'))
  const customer = await createCustomer(environment, dispatcher, url)
  return {
    ...customer,
    async startLoad(gateway) {
      const load: VictimLoad = { ...customer, gatewayUrl: gateway.url }
      await fetch(`${url}/load`, { method: 'PUT', body: JSON.stringify(load) })
    },
    async stopLoad() {
      return (await (await fetch(url, { method: 'DELETE' })).json()) as VictimFigures
    },
  }
}
