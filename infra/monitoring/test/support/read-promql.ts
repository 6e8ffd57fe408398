import { parser } from '@prometheus-io/lezer-promql'
import type { SyntaxNode } from '@lezer/common'

/** A metric that an expression reads, with the conditions on its labels. */
interface Selector {
  readonly metric: string
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[]
}

/** What an expression uses. */
export interface Promql {
  readonly selectors: readonly Selector[]
  /** The labels by which it groups or matches. */
  readonly groupings: readonly string[]
}

/**
 * Reads an expression with Prometheus's own grammar.
 * @throws SyntaxError with the position.
 */
export function readPromql(expression: string): Promql {
  const textOf = ({ from, to }: SyntaxNode): string => expression.slice(from, to)
  const selectors: Selector[] = []
  const groupings: string[] = []
  parser.parse(expression).iterate({
    enter: ({ node }) => {
      if (node.type.isError) throw new SyntaxError(`At ${node.from} of ${expression}`)
      if (node.name === 'VectorSelector') {
        const [metric = node] = node.getChildren('Identifier')
        const [list] = node.getChildren('LabelMatchers')
        const matchers = (list?.getChildren('UnquotedLabelMatcher') ?? []).map((matcher) => {
          const [label = '', operator = '', value = ''] = childrenOf(matcher).map(textOf)
          return { label, operator, value: value.slice(1, -1) }
        })
        selectors.push({ metric: textOf(metric), matchers })
      }
      if (node.name === 'GroupingLabels') groupings.push(...node.getChildren('LabelName').map(textOf))
    },
  })
  return { selectors, groupings }
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child)
  return children
}
