import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { serviceNames as services, settingsOf } from './settings-of.ts'

// The instance that reads the settings leaves this to the tests.
const metaSchema = new Ajv2020({ strict: false })

describe('the settings', () => {
  test.each(services)('of %s have a schema that is valid JSON Schema 2020-12', (name) => {
    expect(metaSchema.validateSchema(settingsOf[name].schema)).toBe(true)
  })
})
