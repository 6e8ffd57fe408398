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

export interface ServiceSetting {
  readonly service: ServiceName
  readonly name: string
  readonly description: string
  /** Undefined when there is none. An empty text means the same as an absent setting. */
  readonly defaultValue: string | number | boolean | undefined
  readonly isRequired: boolean
  /** Whether its value is never shown. */
  readonly isSecret: boolean
  readonly example: string
}

/** The settings of a service, in the order of its schema. */
export function settingsOf(service: ServiceName): ServiceSetting[] {
  const { schema } = SERVICE_SETTINGS[service]
  const required = new Set<string>(schema.required)
  const properties = Object.entries<object>(schema.properties) as [string, SettingSchema][]
  return properties.map(
    ([name, { description, enum: values, default: defaultValue, examples, writeOnly = false }]) => ({
      service,
      name,
      description: values ? `${description} One of: ${values.join(', ')}.` : description,
      defaultValue,
      isRequired: defaultValue === undefined && required.has(name),
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
