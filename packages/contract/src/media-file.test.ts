import { expect, test } from '@jest/globals'
import { findFileSizeError, findMediaError, readMediaContent } from './media-file.ts'

const PDF = Buffer.from('%PDF-1.7 texts!').toString('base64')

test('the extension of a name says what a file is, and its content has to be that in base64', () => {
  expect(readMediaContent('a.PDF', ` ${PDF.slice(0, 5)}\n${PDF.slice(5)}`)).toBe(PDF)
  expect(findMediaError('a.pdf', PDF)).toBeUndefined()
  for (const content of ['text', `${PDF}*`, PDF.slice(0, -1), '', 'iVBORw0KGgo=']) {
    expect(findMediaError('a.pdf', content)).toBe(
      'must be the file in base64, because its name is that of a PDF or an image',
    )
  }
  expect(findMediaError('pdf', 'text')).toBeUndefined()
})

test('a text has 1 MiB at most, and a PDF or an image 3 MiB', () => {
  expect(findFileSizeError('a.txt', 'é'.repeat(524_288))).toBeUndefined()
  expect(findFileSizeError('a.txt', `${'é'.repeat(524_288)}.`)).toMatch(/^must have at most 1 MiB/)
  expect(findFileSizeError('a.pdf', PDF.padEnd(4_194_304, 'A'))).toBeUndefined()
  expect(findFileSizeError('a.pdf', PDF.padEnd(4_194_308, 'A'))).toMatch(/^must have at most 3 MiB/)
})
