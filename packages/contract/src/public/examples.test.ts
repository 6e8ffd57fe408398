import { describe, expect, test } from '@jest/globals'
import type { TSchema } from 'typebox'
import { ErrorResponse } from '../errors.ts'
import { compile } from '../schema/ajv.ts'
import * as examples from './examples.ts'
import { OrganizationOut, WorkflowOut, WorkflowPage, WorkflowStartIn, WorkflowStartOut } from './resources.ts'

describe('every example of the public API', () => {
  test.each<[string, unknown, TSchema]>([
    ['an organization', examples.ORGANIZATION_EXAMPLE, OrganizationOut],
    ['a workflow', examples.WORKFLOW_EXAMPLE, WorkflowOut],
    ['a page', examples.WORKFLOW_PAGE_EXAMPLE, WorkflowPage],
    ['a start', examples.START_EXAMPLE, WorkflowStartIn],
    ['a start in a session', examples.START_IN_SESSION_EXAMPLE, WorkflowStartIn],
    ['a start confirmation', examples.START_CONFIRMATION_EXAMPLE, WorkflowStartOut],
    ['an error', examples.createErrorExample('not_found', 'Workflow not found.'), ErrorResponse],
  ])('is valid: %s', (_what, example, schema) => {
    const validate = compile(schema)
    validate(example)
    expect(validate.errors).toBeNull()
  })
})
