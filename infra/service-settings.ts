import { AppSettings, readAppConfig } from '../services/app/src/config.ts'
import { DispatcherSettings, readDispatcherConfig } from '../services/dispatcher/src/config.ts'
import { GatewaySettings, readGatewayConfig } from '../services/gateway/src/config.ts'
import { readRunnerConfig, RunnerSettings } from '../services/runner/src/config.ts'

/** For each service the JSON Schema of its settings, and the function that reads and checks them. */
export const SERVICE_SETTINGS = {
  gateway: { schema: GatewaySettings, read: readGatewayConfig },
  dispatcher: { schema: DispatcherSettings, read: readDispatcherConfig },
  runner: { schema: RunnerSettings, read: readRunnerConfig },
  app: { schema: AppSettings, read: readAppConfig },
}

export type ServiceName = keyof typeof SERVICE_SETTINGS

export const SERVICE_NAMES = Object.keys(SERVICE_SETTINGS) as ServiceName[]

export type ServiceSetting = ReturnType<typeof settingsOf>[number]

/** The settings of a service, in the order of its schema. */
export function settingsOf(service: ServiceName) {
  const { schema } = SERVICE_SETTINGS[service]
  const required = new Set<string>(schema.required)
  const properties = Object.entries<object>(schema.properties) as [string, SettingSchema][]
  return properties.map(
    ([name, { description, enum: values, default: defaultValue, examples, writeOnly = false }]) => ({
      service,
      name,
      description: values ? `${description} One of: ${values.join(', ')}.` : description,
      /** Undefined when there is none. An empty text means the same as an absent setting. */
      defaultValue,
      isRequired: defaultValue === undefined && required.has(name),
      /** Whether its value is never shown. */
      isSecret: writeOnly,
      example: String(examples[0]),
    }),
  )
}

/** The parts of a setting's schema that `readSettings` requires, and its default. */
interface SettingSchema {
  readonly description: string
  readonly enum?: readonly string[]
  readonly default?: string | number | boolean
  readonly writeOnly?: boolean
  readonly examples: readonly (string | number | boolean)[]
}
