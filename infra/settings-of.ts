import { DispatcherSettings, readDispatcherConfig } from '../services/dispatcher/src/config.ts'
import { GatewaySettings, readGatewayConfig } from '../services/gateway/src/config.ts'
import { readRunnerConfig, RunnerSettings } from '../services/runner/src/config.ts'

export type ServiceName = 'gateway' | 'dispatcher' | 'runner'

/** What each service reads from its environment: the schema, and the reader that checks more than a schema can. */
export const settingsOf = {
  gateway: { schema: GatewaySettings, read: readGatewayConfig },
  dispatcher: { schema: DispatcherSettings, read: readDispatcherConfig },
  runner: { schema: RunnerSettings, read: readRunnerConfig },
}

export const serviceNames = Object.keys(settingsOf) as ServiceName[]

/** The names that a service reads. */
export function settingNames(service: ServiceName): string[] {
  return Object.keys(settingsOf[service].schema.properties)
}

/** Those settings of a service that have a default, with it. */
export function defaultsOf(service: ServiceName): Record<string, string | number | boolean> {
  const properties = Object.entries(settingsOf[service].schema.properties) as [
    string,
    { default?: string | number | boolean },
  ][]
  return Object.fromEntries(
    properties.flatMap(([name, property]) => (property.default === undefined ? [] : [[name, property.default]])),
  )
}
