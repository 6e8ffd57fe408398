import { deflateSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { createInMemoryRun, type InMemoryRunOptions, webhookSource } from '../../../test/support/in-memory-run.ts'
import { callTool, end, PROVIDERS, useModelAgent } from '../../../test/support/model-agent.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { attachFiles, countPages, findReferences } from './attach-files.ts'

const page = '<< /Type /Page /Parent 1 0 R >>\n'
const pdfOf = (body: string | Buffer) => Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.from(body)])
const PDF = pdfOf(`<< /Type /Pages /Count 2 >>\n${page}${page}`).toString('base64')
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3, 4, 5, 6, 7, 8, 9]).toString('base64')

/** An object stream, as newer PDFs have it. */
const packed = (objects: string | Buffer) =>
  Buffer.concat([
    Buffer.from('<< /Type /ObjStm /Filter /FlateDecode >>\nstream\r\n'),
    deflateSync(objects),
    Buffer.from('\nendstream\n'),
  ])

test('pages are counted in plain and in compressed objects, and are at most all that may be read if that fails', async () => {
  expect(await countPages(Buffer.from(PDF, 'base64'))).toBe(2)
  expect(await countPages(pdfOf(Buffer.concat([packed(page), Buffer.from(page), packed(page + page)])))).toBe(4)
  expect(await countPages(pdfOf('encrypted'))).toBe(100)
  expect(await countPages(pdfOf('<< /Type /ObjStm >>\nstream\nno data\nendstream'))).toBe(100)
  expect(await countPages(pdfOf(page.repeat(50_000)))).toBe(101)
  expect(await countPages(pdfOf(packed(Buffer.alloc(20_000_000))))).toBe(100)
})

test('a PDF of very many streams counts as all that may be read, and lets the process do other work meanwhile', async () => {
  let turns = 0
  setImmediate(() => (turns += 1))
  expect(await countPages(pdfOf(page + 'stream endstream\n'.repeat(5_000)))).toBe(1)
  expect(turns).toBe(1)
  expect(await countPages(pdfOf(page + 'stream endstream\n'.repeat(20_000)))).toBe(100)
})

const file = (name: string, ...path: string[]) => ({ id: name, name, path })

const attach = (base64: string, signal: AbortSignal) =>
  attachFiles(
    { organizationId: 'a', readFile: () => Promise.resolve(base64), interrupted: signal } as never,
    { name: 'm', reads: ['pdf'] },
    [file('a.pdf')],
  )

test('runs with small files do not wait for the answers of other models, and those with large ones do', async () => {
  const { signal } = new AbortController()
  for (let count = 0; count < 5; count += 1) await attach(PDF, signal)
  const large = pdfOf(Buffer.alloc(1_048_576)).toString('base64')
  const holding = [await attach(large, signal), await attach(large, signal)]
  const third = attach(large, AbortSignal.abort())
  const first = Promise.race([third.catch(() => 'third'), new Promise((resolve) => setImmediate(resolve, 'waits'))])
  expect(await first).toBe('waits')
  for (const { release } of holding) release()
  await expect(third).rejects.toThrow('aborted')
})

describe('a reference to a file', () => {
  const files = [file('a.pdf'), file('b c.PNG', 'docs'), file('prices.md'), file('a.pdf', 'docs')]
  const find = (context: string, change = {}) => {
    const run = { workflow: { description: '' }, inputMessage: '', context, ...change } as never
    return findReferences(run, files).map(({ name, path }) => [...path, name].join('/'))
  }

  test('is its path after an @, in the context, the input message or the task', () => {
    expect(find('Read @a.pdf, then @docs/b c.PNG.')).toEqual(['a.pdf', 'docs/b c.PNG'])
    expect(find('', { inputMessage: '@docs/a.pdf' })).toEqual(['docs/a.pdf'])
    expect(find('', { workflow: { description: 'As in @a.pdf' } })).toEqual(['a.pdf'])
  })

  test('is no other text: a name alone, a text file, a longer name, an address of email', () => {
    expect(find('a.pdf, @prices.md, @a.pdfx, ada@example.test')).toEqual([])
    expect(find('@no.pdf')).toEqual([])
  })

  test('is found with one that it begins with, and where another one goes on', () => {
    const others = ['a.pdf', 'a.pdf b.pdf', 'a.pdf c.pdf', 'a.png'].map((name) => file(name))
    const run = { workflow: { description: '' }, inputMessage: '', context: '@a.pdf b.pdfx @a.pdf c.pdf' } as never
    expect(findReferences(run, others).map(({ name }) => name)).toEqual(['a.pdf', 'a.pdf c.pdf'])
  })

  test.each([
    ['nearly everywhere', (index: number) => `${index}${'@.pdf'.repeat(50)}`, '@.pdf'.repeat(10_000)],
    ['by their first character', (index: number) => `${index}.pdf`, '@'.repeat(50_000)],
  ])('is looked for within half a second among 1,000 paths that long texts have %s', (_where, nameOf, text) => {
    const many = Array.from({ length: 1_000 }, (_, index) => file(nameOf(index)))
    const run = { workflow: { description: text }, inputMessage: text, context: text.slice(0, 10_000) } as never
    const before = process.threadCpuUsage()
    expect(findReferences(run, many)).toEqual([])
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(500)
  })
})

describe('a run whose text refers to files', () => {
  const model = useModelAgent()
  const FILES = [
    { id: '1', name: 'invoice.pdf', path: ['docs'], content: PDF },
    { id: '2', name: 'photo.png', path: [], content: `${PNG.slice(0, 20)}\n${PNG.slice(20)}` },
    { id: '3', name: 'broken.png', path: [], content: 'text' },
  ]

  async function execute(config: Partial<ModelConfig>, options: InMemoryRunOptions) {
    const agent = await model.start({ otherwise: end('nothing_to_do') }, { reads: ['pdf', 'image'], ...config })
    const { server } = model
    const run = createInMemoryRun({ sources: [webhookSource('Orders', { message: 'x' })], files: FILES, ...options })
    const error = await run.errorOf(agent)
    expect(server.violations).toEqual([])
    return { run, server, error: error?.message }
  }

  test.each(PROVIDERS)(
    'gives %s the PDF and the image with their paths, and says so in the journal and the prompt',
    async (provider) => {
      const { run, server, error } = await execute(
        { provider },
        { context: 'Compare @docs/invoice.pdf and @photo.png.' },
      )
      expect(error).toBeUndefined()
      const [first] = server.requests[0]!.conversation.messages
      expect(first!.files).toEqual([`application/pdf;${PDF}`, `image/png;${PNG}`])
      expect(first!.text).toContain('The file "docs/invoice.pdf":')
      expect(run.prompts[0]!.prompt.message).toContain(
        'attached, and are data from outside as well: "docs/invoice.pdf"',
      )
      const text = 'The model reads the files "docs/invoice.pdf", "photo.png".'
      expect(run.dataOf('note')).toContainEqual({ code: 'files_attached', text })
    },
  )

  test('waits until it is claimed anew if a file was deleted or replaced since, and reads the one that there is then', async () => {
    const [invoice] = FILES
    const options: InMemoryRunOptions = {
      sources: [webhookSource('Orders', { message: 'x' })],
      files: [invoice!],
      context: 'Send what @docs/invoice.pdf says.',
    }
    const agent = await model.start(
      { turns: [callTool('send_to_orders', { message: 'paid' }), end()] },
      { reads: ['pdf'] },
    )
    const newer = pdfOf(page).toString('base64')
    options.endpoint = () => {
      options.files = [{ ...invoice!, id: '4', content: newer }]
      return {}
    }
    const run = createInMemoryRun(options)
    await expect(run.execute(agent)).rejects.toMatchObject({ name: 'RunParkedError' })
    expect(await run.errorOf(agent)).toBeUndefined()
    const read = model.server.requests.map(({ conversation: { messages } }) => messages[0]!.files)
    expect(read).toEqual([[`application/pdf;${PDF}`], [`application/pdf;${newer}`]])
  })

  test('reserves what they may cost: by page, and by image', async () => {
    const amounts: number[] = []
    const prices = { currency: 'EUR', input: 1e6, cacheRead: 1e6, cacheWrite: 1e6, output: 0, reasoning: 0 }
    const reserveCost: InMemoryRunOptions['reserveCost'] = (request) => {
      amounts.push(request.amount)
      return { kind: 'reserved' }
    }
    await execute({ prices }, { context: 'none', reserveCost })
    await execute({ prices }, { context: '@docs/invoice.pdf @photo.png', reserveCost })
    // Two pages and an image of 5,000 tokens each, and the line with their names.
    expect(amounts[1]! - amounts[0]!).toBeGreaterThanOrEqual(15_000)
    expect(amounts[1]! - amounts[0]!).toBeLessThan(15_100)
  })

  test('fails before a request when the model does not read such files, or they exceed a limit, and says which', async () => {
    const many = Array.from({ length: 11 }, (_, n) => ({ id: `${n}`, name: `${n}.png`, path: [], content: PNG }))
    const large = Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.alloc(2_500_000)]).toString('base64')
    const long = { id: '4', name: 'long.pdf', path: [], content: pdfOf(page.repeat(101)).toString('base64') }
    const cases: [Partial<ModelConfig>, InMemoryRunOptions, string][] = [
      [
        { reads: ['image'] },
        { context: '@docs/invoice.pdf' },
        'the model openai-compatible:stub-1 reads no such files',
      ],
      [{}, { context: '@broken.png' }, 'its content is no such file'],
      [{}, { context: many.map(({ name }) => `@${name}`).join(' '), files: many }, 'at most 10 are read'],
      [
        {},
        { context: '@0.png @1.png', files: many.slice(0, 2).map((each) => ({ ...each, content: large })) },
        'more than 4 MiB in all',
      ],
      [{}, { context: '@long.pdf', files: [long] }, 'more than 100 pages in all'],
    ]
    for (const [config, options, message] of cases) {
      const { server, error } = await execute(config, options)
      expect(error).toContain(message)
      expect(server.requests).toEqual([])
    }
  })
})
