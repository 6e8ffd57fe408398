import { expect, test } from '@jest/globals'
import { fieldsOf } from './rules-fields.ts'

test.each([
  [
    '{"order": {"id": 1, "lines": [2]}, "Unit price": 3}',
    ['fields.order.id', 'fields.order.lines', 'fields["Unit price"]'],
  ],
  ['[{"sku": "A"}, {"sku": "B"}]', ['item.sku']],
  ['Order ID: A-17\nTotal: 5\nTotal: 6\nPlease call: ', ['fields["Order ID"]', 'fields.Total']],
  ['氏名：山田\nurl: a：b', ['fields["氏名"]', 'fields.url']],
  ['{"in": {"null": 1, "index": 2}}', ['fields["in"]["null"]', 'fields["in"].index']],
  ['Please call me back', []],
])('the values that %j names are these paths', (text, paths) => {
  expect(fieldsOf(text)).toEqual(paths)
})
