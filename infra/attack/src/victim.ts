import { type Customer, createCustomer } from '@workflow-service/bench/customer'
import type { Environment, Service } from '@workflow-service/bench/environment'
import { createSignedInUser, type SignedInTestUser } from '@workflow-service/testkit'

/** What the victim sends per second: 20 reads and 10 starts to the gateway, 10 reads and 2 saves to the application. */
export interface VictimLoad {
  readonly gatewayUrl: string
  readonly appUrl: string
  /** The headers of an owner's requests to the application. */
  readonly appHeaders: Record<string, string>
  readonly workflowId: string
  readonly apiKey: string
}

/** What the victim noticed. */
export interface VictimFigures {
  /** Response times of GET /v1/organization. */
  readonly readsMs: readonly number[]
  /** From the request of a start until its payload is at the endpoint. */
  readonly startsMs: readonly number[]
  /** Response times of GET /app/workflows. */
  readonly appReadsMs: readonly number[]
  /** Response times of PUT /app/workflows/{id}/active. */
  readonly appSavesMs: readonly number[]
  /** Requests that were not answered as expected, and accepted starts whose payload never arrived or arrived twice. */
  readonly errors: readonly string[]
}

/** An organization that is not attacked itself, with a light, steady load. */
export interface Victim extends Customer {
  startLoad(services: { readonly gateway: Service; readonly app: Service }): Promise<void>
  /** Stops the load when all its payloads have arrived, or 15 s later. */
  stopLoad(): Promise<VictimFigures>
}

/** Starts the victim's process and creates its organization, webhook source and workflow. */
export async function createVictim(environment: Environment, dispatcher: Service): Promise<Victim> {
  const { url } = await environment.startScript(import.meta.resolve('./victim-process.ts'))
  const customer = await createCustomer(environment, dispatcher, url)
  const owner = await createSignedInUser(environment.client, customer.organizationId)
  return {
    ...customer,
    async startLoad({ gateway, app }) {
      const load = {
        ...customer,
        gatewayUrl: gateway.url,
        appUrl: app.url,
        appHeaders: appHeadersOf(owner),
      } satisfies VictimLoad
      await fetch(`${url}/load`, { method: 'PUT', body: JSON.stringify(load) })
    },
    async stopLoad() {
      return (await (await fetch(url, { method: 'DELETE' })).json()) as VictimFigures
    },
  }
}

/** What a page of the application sends with each request. */
export function appHeadersOf({ cookie: { name, value } }: SignedInTestUser): Record<string, string> {
  return { cookie: `${name}=${value}`, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
}
