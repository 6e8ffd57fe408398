import { accessSync, constants } from 'node:fs'
import { splitHosts } from '@workflow-service/contract'
import { splitList } from './split-list.ts'
import { parseOtlpHeaders, type TracingOptions } from './tracing.ts'
import { parseTrustProxy } from './trust-proxy.ts'
import { Type } from '@workflow-service/contract/type'

/** The schemas of settings that several programs read, each under the same name and with the same meaning. */
export const SharedSettings = {
  DATABASE_URL: Type.String({
    format: 'postgres-url',
    writeOnly: true,
    description: 'The URL of PostgreSQL. Of several hosts, separated by commas, the one that accepts writes is used.',
    examples: ['postgres://workflow:secret@postgres:5432/workflow'],
  }),
  AMQP_URL: Type.String({
    format: 'amqp-url',
    writeOnly: true,
    description: 'The URL of RabbitMQ. Of several hosts, separated by commas, one that answers is used.',
    examples: ['amqp://workflow:secret@rabbitmq:5672'],
  }),
  AMQP_QUEUE_TYPE: Type.Unsafe<'quorum' | 'classic'>({
    type: 'string',
    enum: ['quorum', 'classic'],
    default: 'quorum',
    description: 'The type of the session queue; the same for gateways and runners.',
    examples: ['quorum'],
  }),
  DISPATCHER_URL: Type.String({
    format: 'http-url',
    description: 'The URL of the dispatcher.',
    examples: ['http://dispatcher:8081'],
  }),
  INTERNAL_API_TOKEN: Type.String({
    format: 'token-list',
    writeOnly: true,
    description:
      'Bearer token of the internal API, at least 32 characters. Of several, separated by commas, the dispatcher accepts all and its callers send the first.',
    examples: ['$(openssl rand -hex 32)'],
  }),
  SECRETS_KEY: Type.String({
    format: 'base64-32-list',
    writeOnly: true,
    description:
      'Keys for secrets at rest, base64 of 32 bytes each, separated by commas: the first encrypts, all decrypt. Runners need it only if organizations have own keys of models.',
    examples: ['$(openssl rand -base64 32)'],
  }),
  TRUST_PROXY: Type.String({
    default: 'false',
    description:
      "Proxies whose X-Forwarded-For header gives the caller's address: their number, or their networks; false trusts none.",
    examples: ['1', '10.0.0.0/8,127.0.0.1'],
  }),
  RATE_LIMIT_STORE_URL: Type.Optional(
    Type.String({
      format: 'redis-url',
      writeOnly: true,
      description: 'Redis or Valkey in which all processes count together; without it, each process counts alone.',
      examples: ['redis://redis:6379'],
    }),
  ),
  API_URL: Type.Optional(
    Type.String({
      format: 'http-url',
      description:
        'The address of the public API as customers see it: examples of calls and the public OpenAPI document name it. Without it, the document names no host.',
      examples: ['https://api.example.com'],
    }),
  ),
  HOST: Type.String({ default: '0.0.0.0', description: 'The address to listen on.', examples: ['0.0.0.0'] }),
  SHUTDOWN_DELAY_SECONDS: Type.Integer({
    minimum: 0,
    maximum: 300,
    default: 0,
    description:
      'How long a process that gets SIGTERM serves requests, with /readyz failing, before it closes its port: longer than a load balancer takes to choose others. At least 6 behind one that keeps connections open.',
    examples: [15],
  }),
  LOG_LEVEL: Type.Unsafe<string>({
    type: 'string',
    enum: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    description: 'The lowest level of log lines to write.',
    examples: ['info'],
  }),
  /** Creates the schema of a TCP port. */
  port: (options: { default: number; description: string }) =>
    Type.Integer({ minimum: 0, maximum: 65_535, ...options, examples: [options.default] }),
  /** Creates the schema of `DATABASE_POOL_SIZE`. */
  poolSize: (options: { default: number }) =>
    Type.Integer({
      minimum: 2,
      maximum: 1_000,
      ...options,
      description: 'Maximum connections of a process to PostgreSQL.',
      examples: [options.default],
    }),
  /** The settings of tracing. */
  tracing: {
    OTEL_EXPORTER_OTLP_ENDPOINT: Type.Optional(
      Type.String({
        format: 'http-url',
        description:
          'The base URL of an OpenTelemetry receiver (OTLP/HTTP, JSON) for traces of requests, runs and deliveries, without their texts; without it, no library for them is loaded.',
        examples: ['http://otel-collector:4318'],
      }),
    ),
    OTEL_EXPORTER_OTLP_HEADERS: Type.String({
      writeOnly: true,
      default: '',
      description:
        'Headers of the requests to OTEL_EXPORTER_OTLP_ENDPOINT: name=value, separated by commas, values percent-encoded.',
      examples: ['api-key=abc'],
    }),
    OTEL_TRACES_SAMPLER_ARG: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 1,
      description:
        'The share of the traces that begin here and are exported. Requests with a traceparent follow its sampled flag.',
      examples: [0.1],
    }),
  },
}

/** Reads the texts of shared settings. */
export const SHARED_PARSERS = {
  DATABASE_URL: checkFiles,
  OTEL_EXPORTER_OTLP_HEADERS: parseOtlpHeaders,
  TRUST_PROXY: parseTrustProxy,
}

/** The configuration that every service has. */
export type ServiceConfig = ReturnType<typeof toServiceConfig>

/** Returns the part of the configuration that every service has. */
export function toServiceConfig(settings: {
  readonly DATABASE_URL: string
  readonly DATABASE_POOL_SIZE: number
  readonly HOST: string
  readonly PORT: number
  readonly LOG_LEVEL: string
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string
  readonly OTEL_EXPORTER_OTLP_HEADERS: TracingOptions['headers']
  readonly OTEL_TRACES_SAMPLER_ARG: number
}) {
  return {
    databaseUrl: settings.DATABASE_URL,
    databasePoolSize: settings.DATABASE_POOL_SIZE,
    host: settings.HOST,
    port: settings.PORT,
    logLevel: settings.LOG_LEVEL,
    tracing: {
      endpoint: settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
      headers: settings.OTEL_EXPORTER_OTLP_HEADERS,
      sampleRatio: settings.OTEL_TRACES_SAMPLER_ARG,
    },
  }
}

/** Returns the part of the configuration of a service that uses the session queue and calls the dispatcher. */
export function toClientConfig(settings: {
  readonly AMQP_URL: string
  readonly AMQP_QUEUE_TYPE: 'quorum' | 'classic'
  readonly DISPATCHER_URL: string
  readonly INTERNAL_API_TOKEN: string
}) {
  return {
    /** Not used when the caller provides a session queue. */
    amqpUrl: settings.AMQP_URL,
    amqpQueueType: settings.AMQP_QUEUE_TYPE,
    dispatcherUrl: settings.DISPATCHER_URL,
    /** The first of several. */
    internalApiToken: splitList(settings.INTERNAL_API_TOKEN)[0] ?? '',
  }
}

/** @throws Error if a file that the URL of PostgreSQL names cannot be read: each connection would fail. */
function checkFiles(url: string): string {
  const [first] = splitHosts(url)
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = new URL(first).searchParams.get(name)
    try {
      if (file) accessSync(file, constants.R_OK)
    } catch (error) {
      throw new Error(`names as ${name} what cannot be read (${(error as Error).message})`, { cause: error })
    }
  }
  return url
}
