import type {
  ModelAnswer,
  ModelRequest,
  ModelToolCall,
  ModelToolDefinition,
  ModelTurn,
} from '@workflow-service/testkit'
import type { EvaluationCase, ExpectedDelivery } from './case-schema.ts'
import { isObject, toSamplePayload } from './matchers.ts'

/**
 * The turns of a model that does what the case expects: one expected delivery in each answer, and then it is done. Finds
 * the tools by the sources' names in their descriptions, as a model would.
 */
export function toPerfectTurns(entry: EvaluationCase): ModelTurn[] {
  const examples = new Map(entry.sources.map(({ name, example }) => [name, example]))
  const deliveries = entry.expect.deliveries.map((delivery) => (request: ModelRequest) => ({
    toolCalls: [toCall(delivery, examples, request.conversation.tools)],
  }))
  return [...deliveries, toEnd(entry)]
}

function toCall(
  { source, payload }: ExpectedDelivery,
  examples: ReadonlyMap<string, Record<string, unknown>>,
  tools: readonly ModelToolDefinition[],
): ModelToolCall {
  const offered = tools.find(({ description }) => description.includes(`webhook source ${JSON.stringify(source)}`))
  if (!offered) throw new Error(`No tool is described as the webhook source ${source}`)
  const sample = toSamplePayload(payload, examples.get(source))
  return { name: offered.name, arguments: useAliases(sample, offered.schema) }
}

function toEnd({ expect, id }: EvaluationCase): ModelAnswer {
  const hasNothingToDo = expect.deliveries.length === 0
  const status = expect.status === 'failed' ? 'failed' : hasNothingToDo ? 'nothing_to_do' : 'done'
  return { toolCalls: [{ name: 'end_run', arguments: { status, reason: `As the case ${id} expects.` } }] }
}

/** Replaces field names by those of the tool's schema, which says in descriptions what an alias is sent as. */
function useAliases(value: unknown, schema: unknown): unknown {
  if (!isObject(schema)) return value
  // An object of any fields is a list of names and values.
  if (schema['type'] === 'array' && isObject(value) && !Array.isArray(value)) {
    return Object.entries(value).map(([name, item]) => ({ name, value: item }))
  }
  if (Array.isArray(value)) return value.map((item) => useAliases(item, schema['items']))
  if (!isObject(value)) return value
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const aliases = new Map(
    Object.entries(properties).map(([alias, property]) => [realName(alias, property), alias] as const),
  )
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      const alias = aliases.get(name) ?? name
      return [alias, useAliases(item, properties[alias])]
    }),
  )
}

function realName(alias: string, property: unknown): string {
  const description = isObject(property) && typeof property['description'] === 'string' ? property['description'] : ''
  const [, quoted] = /^Sent as ("(?:[^"\\]|\\.)*")\./u.exec(description) ?? []
  return quoted === undefined ? alias : (JSON.parse(quoted) as string)
}
