import { Document, isScalar, Scalar, visit } from 'yaml'

export type ManifestFormat = 'yaml' | 'json'
export type WriteText = (text: string) => void

type Section = 'users' | 'webhook_sources' | 'lookups' | 'workflows'
/** Lists of a workflow whose items may be large. */
type Part = 'triggers' | 'files'

/** Writes a manifest piece by piece. Fields whose value is null or undefined are left out. */
interface ManifestWriter {
  begin(organization: object): void
  /** The items of a section come one after the other; `comment` is for readers of YAML. */
  item(section: Section, item: object, comment?: string): void
  /** An item of the workflow that was written last; those of a part come one after the other. */
  part(part: Part, item: object): void
  end(): void
}

export function createManifestWriter(format: ManifestFormat, write: WriteText, isPortable: boolean): ManifestWriter {
  return format === 'yaml' ? createYamlWriter(write, isPortable ? PORTABLE_HEADER : HEADER) : createJsonWriter(write)
}

const HEADER = `# Exported. Applying it with "wf apply" changes nothing.
# Not contained, and kept by an apply: API keys, signing secrets, sessions, the roles of people, runs and logs.
# updated_at is applied as it is written: remove it from a workflow that you change.
`

const PORTABLE_HEADER = `# Exported without ids and times. Apply it to another organization with "wf apply FILE --organization NAME".
# Not contained: API keys, signing secrets, sessions, the roles of people, runs and logs.
`

function createYamlWriter(write: WriteText, header: string): ManifestWriter {
  let open: Section | undefined
  let openPart: Part | undefined
  return {
    begin: (organization) => write(`${header}\n${toYaml({ organization: withoutNulls(organization) })}`),
    item: (section, item, comment) => {
      const text = toYaml({ [section]: [withoutNulls(item)] })
      if (open !== section) write(`\n${section}:\n`)
      write(text.slice(text.indexOf('\n') + 1))
      if (comment !== undefined) write(`    # ${comment}\n`)
      open = section
      openPart = undefined
    },
    part: (part, item) => {
      const text = toYaml({ workflows: [{ [part]: [withoutNulls(item)] }] })
      if (openPart !== part) write(`    ${part}:\n`)
      write(text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1))
      openPart = part
    },
    end: () => {},
  }
}

const BLOCK_MAX_LINES = 50_000

function toYaml(value: object): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Pair: (_index, { key }) => {
      // Without quotes it would merge another object.
      if (isScalar(key) && key.value === '<<') key.type = Scalar.QUOTE_DOUBLE
    },
    Scalar: (_key, node) => {
      if (typeof node.value !== 'string') return
      // As a block, it would end with the empty line before the next section, lose lines of white space alone, or hold
      // up other requests. Only in quotes can a terminal's output escape what would control the terminal
      // (`guardTerminal` in packages/cli).
      const needsQuotes = /(?:^|\n)[\t ]*\n$|^[\n\t ]+$|[[\p{Cc}\p{Cf}]--[\n\t]]/v
      const isLong = node.value.split('\n', BLOCK_MAX_LINES + 1).length > BLOCK_MAX_LINES
      if (isLong || needsQuotes.test(node.value)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  // In quotes of its own, the library is slow with long texts, and writes a backslash into a line that is a space.
  return document.toString({ lineWidth: 0, doubleQuotedAsJSON: true })
}

function createJsonWriter(write: WriteText): ManifestWriter {
  let open: Section | undefined
  let isInWorkflow = false
  let openPart: Part | undefined
  const closeWorkflow = () => {
    if (isInWorkflow) write(openPart === undefined ? '}' : ']}')
    isInWorkflow = false
    openPart = undefined
  }
  return {
    begin: (organization) => write(`{"organization":${toJson(organization)}`),
    item: (section, item) => {
      closeWorkflow()
      const separator = open === section ? ',\n' : `${open === undefined ? '' : ']'},\n"${section}":[\n`
      const text = toJson(item)
      isInWorkflow = section === 'workflows'
      // The parts of a workflow follow in the same object.
      write(`${separator}${isInWorkflow ? text.slice(0, -1) : text}`)
      open = section
    },
    part: (part, item) => {
      const close = openPart === undefined ? '' : ']'
      write(`${openPart === part ? ',' : `${close},"${part}":[`}${toJson(item)}`)
      openPart = part
    },
    end: () => {
      closeWorkflow()
      write(`${open === undefined ? '' : ']'}}\n`)
    },
  }
}

function toJson(value: object): string {
  return JSON.stringify(withoutNulls(value), (_key, item: unknown) => {
    return typeof item === 'bigint' ? toRawJson(item) : item
  })
}

/** Returns what JSON.stringify writes with all digits. Node 24 has `rawJSON`, but not TypeScript's library yet. */
export function toRawJson(number: bigint): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(number))
}

function withoutNulls(item: object): object {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null && value !== undefined))
}
