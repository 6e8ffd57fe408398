import { Document, isScalar, Scalar, visit } from 'yaml'

export type ManifestFormat = 'yaml' | 'json'
export type WriteText = (text: string) => void

type Section = 'users' | 'webhook_sources' | 'workflows'

/** Writes a manifest piece by piece. Fields whose value is null or undefined are left out. */
interface ManifestWriter {
  begin(organization: object): void
  /** The items of a section come one after the other; `comment` is for readers of YAML. */
  item(section: Section, item: object, comment?: string): void
  /** A file of the workflow that was written last. */
  file(file: object): void
  end(): void
}

export function createManifestWriter(format: ManifestFormat, write: WriteText): ManifestWriter {
  return format === 'yaml' ? createYamlWriter(write) : createJsonWriter(write)
}

const HEADER = `# Exported. Applying it with "wf apply" changes nothing.
# Not contained, and kept by an apply: API keys, signing secrets, sessions, the roles of people, runs and logs.
# updated_at is applied as it is written: remove it from a workflow that you change.
`

function createYamlWriter(write: WriteText): ManifestWriter {
  let open: Section | undefined
  let hasFiles = false
  return {
    begin: (organization) => write(`${HEADER}\n${toYaml({ organization: withoutNulls(organization) })}`),
    item: (section, item, comment) => {
      const text = toYaml({ [section]: [withoutNulls(item)] })
      if (open !== section) write(`\n${section}:\n`)
      write(text.slice(text.indexOf('\n') + 1))
      if (comment !== undefined) write(`    # ${comment}\n`)
      open = section
      hasFiles = false
    },
    file: (file) => {
      const text = toYaml({ workflows: [{ files: [withoutNulls(file)] }] })
      if (!hasFiles) write('    files:\n')
      write(text.split('\n').slice(2).join('\n'))
      hasFiles = true
    },
    end: () => {},
  }
}

function toYaml(value: object): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Pair: (_index, { key }) => {
      // Without quotes it would merge another object.
      if (isScalar(key) && key.value === '<<') key.type = Scalar.QUOTE_DOUBLE
    },
    Scalar: (_key, node) => {
      // As a block, it would end with the empty line before the next section.
      if (typeof node.value === 'string' && /(?:^|\n)\n$/.test(node.value)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  return document.toString({ lineWidth: 0 })
}

function createJsonWriter(write: WriteText): ManifestWriter {
  let open: Section | undefined
  let fileCount: number | undefined
  const closeWorkflow = () => {
    if (fileCount !== undefined) write(fileCount === 0 ? '}' : ']}')
    fileCount = undefined
  }
  return {
    begin: (organization) => write(`{"organization":${toJson(organization)}`),
    item: (section, item) => {
      closeWorkflow()
      const separator = open === section ? ',\n' : `${open === undefined ? '' : ']'},\n"${section}":[\n`
      const text = toJson(item)
      const isWorkflow = section === 'workflows'
      // The files of a workflow follow in the same object.
      write(`${separator}${isWorkflow ? text.slice(0, -1) : text}`)
      if (isWorkflow) fileCount = 0
      open = section
    },
    file: (file) => {
      write(`${fileCount === 0 ? ',"files":[' : ','}${toJson(file)}`)
      fileCount = (fileCount ?? 0) + 1
    },
    end: () => {
      closeWorkflow()
      write(`${open === undefined ? '' : ']'}}\n`)
    },
  }
}

function toJson(value: object): string {
  return JSON.stringify(withoutNulls(value), (_key, item: unknown) => {
    return typeof item === 'bigint' ? (JSON as unknown as RawJson).rawJSON(String(item)) : item
  })
}

/** `JSON.rawJSON` exists in Node 24 but not in TypeScript's library yet. */
interface RawJson {
  rawJSON(text: string): unknown
}

function withoutNulls(item: object): object {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null && value !== undefined))
}
