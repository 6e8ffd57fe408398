import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { inflate } from 'node:zlib'
import {
  ATTACHED_BYTES_MAX,
  ATTACHED_FILES_MAX,
  ATTACHED_PAGES_MAX,
  mediaTypeOf,
  readMediaContent,
} from '@workflow-service/contract'
import type { WorkflowFile } from '@workflow-service/database'
import { InFlightLimiter } from '@workflow-service/service-kit'
import { FileReplacedError, RunError, RunParkedError } from '../../run-errors.ts'
import type { ModelConfig } from '../agent-settings.ts'
import type { AgentRun, RunFacts } from '../agent.ts'
import type { AttachedFile } from './model-question.ts'
import { pathOf } from './model-tools.ts'

/** What the providers count for a large image, and for the text and the image of a dense page, rounded up. */
const TOKENS_PER_IMAGE = 5_000
const TOKENS_PER_PAGE = 5_000
/** A request keeps its files about three times: in base64, as JSON, and as bytes. */
const REQUESTS_AT_ONCE = { total: 4, perKey: 2, maxWaiting: 1_000, maxWaitingPerKey: 500, waitMs: 30_000 }
/** Files that are smaller in base64 in all keep no slot: a hundred runs may have them for as long as models take. */
const SMALL_LENGTH = 262_144
const BUSY_PARK_MS = 10_000

const slots = new InFlightLimiter(REQUESTS_AT_ONCE)

/**
 * Finds the PDFs and images that the workflow's task, the trigger's input message and the context refer to, such as
 * `@docs/invoice.pdf`. Each `@` of the texts is looked up among the sorted paths: looking for each path in the texts
 * takes seconds with 1,000 long ones that the texts nearly have everywhere.
 */
export function findReferences(
  { workflow, inputMessage, context }: RunFacts,
  files: readonly WorkflowFile[],
): readonly WorkflowFile[] {
  const text = [workflow.description, inputMessage, context].join('\n')
  if (!text.includes('@')) return []
  const referable = files
    .filter(({ name }) => mediaTypeOf(name))
    .map((file) => ({ file, reference: `@${pathOf(file)}` }))
  const references = [...new Set(referable.map(({ reference }) => reference))].toSorted((a, b) => (a < b ? -1 : 1))
  const shorter = findShorter(references)
  const longest = references.reduce((length, reference) => Math.max(length, reference.length), 0)
  const found = new Set<string>()
  for (let at = text.indexOf('@'); at !== -1 && found.size < references.length; at = text.indexOf('@', at + 1)) {
    const rest = text.slice(at, at + longest)
    let index: number | undefined = findLast(references, rest)
    while (index !== undefined) {
      const reference: string = references[index]!
      const isHere = rest.startsWith(reference) && !/[\p{L}\p{N}_]/u.test(text.charAt(at + reference.length))
      if (isHere) found.add(reference)
      index = shorter[index]
    }
  }
  return referable.filter(({ reference }) => found.has(reference)).map(({ file }) => file)
}

/** For each sorted text, the index of the longest other one with which it begins. */
function findShorter(sorted: readonly string[]): readonly (number | undefined)[] {
  const shorter: (number | undefined)[] = []
  for (const [index, text] of sorted.entries()) {
    let before = index === 0 ? undefined : index - 1
    while (before !== undefined && !text.startsWith(sorted[before]!)) before = shorter[before]
    shorter.push(before)
  }
  return shorter
}

/** The index of the last sorted text that is not after this one. */
function findLast(sorted: readonly string[], text: string): number | undefined {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (sorted[middle]! <= text) from = middle + 1
    else to = middle
  }
  return from === 0 ? undefined : from - 1
}

/**
 * Reads the files for one answer of the model. Waits while other runs of this process have many large files in
 * memory; `release` ends that.
 * @throws RunError `file_not_readable`; RunParkedError if too many runs wait, or a file was deleted or replaced since
 *   it was listed.
 */
export async function attachFiles(
  run: AgentRun,
  { name, reads }: Pick<ModelConfig, 'name' | 'reads'>,
  found: readonly WorkflowFile[],
): Promise<{ readonly files: readonly AttachedFile[]; readonly release: () => void }> {
  if (found.length === 0) return { files: [], release: () => {} }
  for (const file of found) {
    if (reads.includes(mediaTypeOf(file.name)!.kind)) continue
    fail(file, `the model ${name} reads no such files; choose one that does, or leave @${pathOf(file)} out`)
  }
  if (found.length > ATTACHED_FILES_MAX) {
    fail(found[ATTACHED_FILES_MAX]!, `the texts refer to ${found.length} files; at most ${ATTACHED_FILES_MAX} are read`)
  }
  const slot = await slots.acquire(run.organizationId)
  if (typeof slot === 'string') throw new RunParkedError('Other runs read many files', BUSY_PARK_MS)
  try {
    run.interrupted.throwIfAborted()
    const files = await readFiles(run, found)
    const length = files.reduce((sum, { base64 }) => sum + base64.length, 0)
    if (length > SMALL_LENGTH) return { files, release: slot }
    slot()
    return { files, release: () => {} }
  } catch (error) {
    slot()
    throw error
  }
}

async function readFiles(run: AgentRun, found: readonly WorkflowFile[]): Promise<AttachedFile[]> {
  const files: AttachedFile[] = []
  let [bytes, pages] = [0, 0]
  for (const file of found) {
    const { kind, mediaType } = mediaTypeOf(file.name)!
    const content = await run.readFile(file.id)
    if (content === undefined) throw new FileReplacedError(pathOf(file))
    const base64 = readMediaContent(file.name, content)
    if (base64 === undefined) fail(file, 'its content is no such file')
    bytes += (base64.length / 4) * 3
    if (bytes > ATTACHED_BYTES_MAX) fail(file, `the files have more than ${ATTACHED_BYTES_MAX / 1_048_576} MiB in all`)
    const filePages = kind === 'pdf' ? await countPages(Buffer.from(base64, 'base64')) : 0
    pages += filePages
    if (pages > ATTACHED_PAGES_MAX) fail(file, `the files have more than ${ATTACHED_PAGES_MAX} pages in all`)
    const tokens = kind === 'pdf' ? filePages * TOKENS_PER_PAGE : TOKENS_PER_IMAGE
    files.push({ path: pathOf(file), mediaType, base64, tokens })
  }
  return files
}

function fail(file: WorkflowFile, why: string): never {
  throw new RunError('file_not_readable', `The file ${JSON.stringify(pathOf(file))} cannot be read: ${why}`)
}

const inflateAsync = promisify(inflate)
/** What is inflated of a PDF to count its pages. */
const MAX_INFLATED_BYTES = 8 * 1_048_576
/** Looking at very many empty ones would hold up the process. */
const MAX_STREAMS = 10_000
const STREAMS_PER_TURN = 1_000
/** Bytes of the dictionary before a stream. */
const MAX_DICTIONARY = 400
const STREAM = 'stream'
const END = 'endstream'

/**
 * Counts the pages of a PDF by their objects, also in compressed object streams. ATTACHED_PAGES_MAX if that is not
 * possible, such as for an encrypted one or one of very many streams: the most that it may cost.
 */
export async function countPages(pdf: Buffer): Promise<number> {
  let pages = countPageObjects(pdf)
  let left = MAX_INFLATED_BYTES
  let streams = 0
  for (let at = pdf.indexOf(STREAM), end; at !== -1; at = pdf.indexOf(STREAM, end + END.length)) {
    streams += 1
    if (streams > MAX_STREAMS) return ATTACHED_PAGES_MAX
    if (streams % STREAMS_PER_TURN === 0) await setImmediate()
    end = pdf.indexOf(END, at)
    if (end === -1) end = pdf.length
    if (!pdf.subarray(Math.max(0, at - MAX_DICTIONARY), at).includes('/ObjStm')) continue
    const begin = at + STREAM.length + (pdf[at + STREAM.length] === CARRIAGE_RETURN ? 2 : 1)
    const inflated = await inflateAsync(pdf.subarray(begin, end), { maxOutputLength: left }).catch(() => null)
    left -= inflated?.length ?? left
    if (!inflated || left <= 0) return ATTACHED_PAGES_MAX
    pages += countPageObjects(inflated)
  }
  return pages === 0 ? ATTACHED_PAGES_MAX : pages
}

const CARRIAGE_RETURN = 13

/** At most one more than may be read. */
function countPageObjects(bytes: Buffer): number {
  const pattern = /\/Type\s{0,10}\/Page(?![A-Za-z])/gu
  const text = bytes.toString('latin1')
  let count = 0
  while (count <= ATTACHED_PAGES_MAX && pattern.test(text)) count += 1
  return count
}
