import { expect, test } from '@jest/globals'
import { findFileContentError, readMediaContent } from './media-file.ts'

const PDF = Buffer.from('%PDF-1.7 texts!').toString('base64')

test('the extension of a name says what a file is, and its content has to be that in base64', () => {
  expect(readMediaContent('a.PDF', ` ${PDF.slice(0, 5)}\n${PDF.slice(5)}`)).toBe(PDF)
  expect(findFileContentError('a.pdf', PDF)).toBeUndefined()
  for (const content of ['text', `${PDF}*`, PDF.slice(0, -1), '', 'iVBORw0KGgo=']) {
    expect(findFileContentError('a.pdf', content)).toBe(
      'must be the file in base64, because its name is that of a PDF or an image',
    )
  }
  expect(findFileContentError('pdf', 'text')).toBeUndefined()
})

test('a text has 1 MiB at most, and a PDF or an image 3 MiB', () => {
  expect(findFileContentError('a.txt', 'é'.repeat(524_288))).toBeUndefined()
  expect(findFileContentError('a.txt', `${'é'.repeat(524_288)}.`)).toMatch(/^must have at most 1 MiB/)
  expect(findFileContentError('a.pdf', PDF.padEnd(4_194_304, 'A'))).toBeUndefined()
  expect(findFileContentError('a.pdf', PDF.padEnd(4_194_308, 'A'))).toMatch(/^must have at most 3 MiB/)
})
