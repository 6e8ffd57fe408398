import type { AppWebhookSourceOut } from '@workflow-service/contract'
import { quote } from '../../components/quote.ts'

const HEADER = `# A source gets a payload when its "when" is true; without "when", always.
# Variables: fields.… (the values of the context, by name), context (the whole text), input_message,
# workflow.name, workflow.description, now.
deliveries:
`

/** A condition over a field of the example: a number, or else the first field. */
function exampleCondition(example: Record<string, unknown>): string {
  const found = Object.entries(example).find(([, value]) => typeof value === 'number')
  const name = found?.[0] ?? Object.keys(example)[0] ?? 'total'
  const field = /^[a-z_]\w*$/i.test(name) ? `fields.${name}` : `fields[${JSON.stringify(name)}]`
  return found ? `number(${field}) > 100.0` : `text(${field}) != ""`
}

/** A `rules.yaml` to begin with: one delivery for each of the sources, and the sentence that needs it as a comment. */
export function rulesTemplate(
  sources: readonly Pick<AppWebhookSourceOut, 'name' | 'example_request_body'>[],
  sentence: string,
): string {
  const deliveries = sources.map(({ name, example_request_body: example }) => {
    return `  - to: ${JSON.stringify(name)}\n    when: ${exampleWhen(exampleCondition(example))}\n`
  })
  return `# ${quote(sentence)}\n# EXAMPLE: change the condition below; it is not made from your sentence.\n${HEADER}${deliveries.join('')}`
}

/** A field in brackets may hold signs of YAML. */
const exampleWhen = (condition: string) => (condition.includes('[') ? JSON.stringify(condition) : condition)
