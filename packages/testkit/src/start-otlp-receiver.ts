import { waitUntil } from '@workflow-service/dev-servers'
import { startCustomerEndpoint } from './start-customer-endpoint.ts'

/** A span as it was exported, with its attributes as an object. */
export interface ReceivedSpan {
  readonly service: string
  readonly traceId: string
  readonly spanId: string
  /** Absent or empty for the first span of a trace. */
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code: number; readonly message?: string }
  readonly events: readonly unknown[]
  readonly attributes: Readonly<Record<string, unknown>>
}

/** The number of each kind of span in OTLP. */
export const SPAN_KINDS = { internal: 1, server: 2, client: 3, producer: 4 } as const

type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[]
/** A scalar has one property, named for its type. */
type OtlpValue = Readonly<Record<string, unknown>> & { readonly arrayValue?: { readonly values: readonly OtlpValue[] } }
type OtlpSpan = Omit<ReceivedSpan, 'service' | 'attributes'> & { readonly attributes: OtlpAttributes }
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

/** Starts a receiver of OTLP over HTTP, which keeps everything that it gets. */
export async function startOtlpReceiver() {
  const endpoint = await startCustomerEndpoint({ answer: { body: {} } })
  const spans = (): ReceivedSpan[] => endpoint.requests.flatMap(({ json }) => toSpans(json as OtlpBody))
  return {
    url: endpoint.url,
    requests: endpoint.requests,
    /** In the order in which they ended. */
    spans,
    /** All requests with their headers, as text. */
    text: () => endpoint.requests.map(({ path, text }) => `${path}\n${text}`).join('\n'),
    async waitForSpans(areEnough: (spans: ReceivedSpan[]) => boolean, what: string) {
      const message = () => `${what}; there are: ${JSON.stringify(spans().map(({ name }) => name))}`
      await waitUntil(() => areEnough(spans()), { timeoutMs: 60_000, message })
      return spans()
    },
    close: () => endpoint.close(),
  }
}

function toSpans({ resourceSpans }: OtlpBody): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(toObject(resource.attributes)['service.name'])
    return scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({ ...span, service, attributes: toObject(span.attributes) })),
    )
  })
}

function toObject(attributes: OtlpAttributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]))
}

function toValue(value: OtlpValue): unknown {
  return value.arrayValue ? value.arrayValue.values.map(toValue) : Object.values(value)[0]
}
