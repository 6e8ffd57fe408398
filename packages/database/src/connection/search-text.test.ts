import { describe, expect, test } from '@jest/globals'
import { foldSearch, workflowSearchText } from './search-text.ts'

describe('workflowSearchText', () => {
  test('contains the folded name and the folded description', () => {
    expect(workflowSearchText('Forward ORDERS', 'To the Straße')).toContain(foldSearch('Orders'))
    expect(workflowSearchText('Forward ORDERS', 'To the Straße')).toContain(foldSearch('STRASSE'))
  })

  test.each(['ab', 'a\nb', 'a\uffffb', '\uffff'])('is never matched across name and description by %j', (search) => {
    expect(workflowSearchText('a', 'b').includes(foldSearch(search))).toBe(false)
  })

  test('finds U+FFFF in a name that has it', () => {
    expect(workflowSearchText('a\uffffb', '').includes(foldSearch('a\uffff'))).toBe(true)
  })
})
