import type { RunEvent } from '../notices.ts'
import { VERIFICATION_TYPE } from '../schema/check-json-value.ts'
import type { OrganizationOut, WorkflowOut, WorkflowPage, WorkflowStartIn, WorkflowStartOut } from './resources.ts'

/** Examples of bodies for the OpenAPI document of the public API; the linter validates each by its schema. */

const WORKFLOW_ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const SESSION_ID = '01a1fd4e-f109-7ab0-9050-44d23f55f995'

export const ORGANIZATION_EXAMPLE: OrganizationOut = { id: '01890a5d-ac96-7ab2-80e2-4536629c90de', name: 'Acme' }

export const WORKFLOW_EXAMPLE: WorkflowOut = {
  id: WORKFLOW_ID,
  name: 'Forward orders',
  description: 'Reads an order out of the context and sends it to Order intake.',
  scope: 'company_wide',
  is_active: true,
  auto_run: { enabled: true, frequency: 'daily' },
  users: [
    { email: 'ada@acme.test', name: 'Ada Lovelace' },
    { email: 'grace@acme.test', name: 'Grace Hopper' },
  ],
  triggers: [
    {
      id: '01890a5d-ac97-7f3c-8a51-6d2f8d1c9b40',
      name: 'Orders from the shop',
      is_active: true,
      trigger_source: { slug: 'api', name: 'API' },
      events: [{ slug: 'started', name: 'Started' }],
      filters: null,
      input_message: 'This is an order from the shop.',
      subagent_sources: [
        { id: '01890a5d-ac98-7c1e-b8f0-0a6a5b7c2d11', name: 'Order intake', type: 'api' },
        { id: null, name: 'Researcher', type: 'platform_internal' },
      ],
    },
  ],
  files: [{ id: '01890a5d-ac99-7d24-9c3f-2b8e4f5a6c72', name: 'prices.md', path: ['docs'] }],
  created_at: '2026-01-31T09:00:00.000Z',
  updated_at: '2026-02-14T16:30:00.000Z',
}

export const WORKFLOW_PAGE_EXAMPLE: WorkflowPage = {
  data: [WORKFLOW_EXAMPLE],
  pagination: { next_cursor: 'AQAAAZwTs2kAAYkKXayWd0u8zrMCCZqAV3Jk0vF1c9s', has_more: true },
}

export const START_EXAMPLE: WorkflowStartIn = { context: '{"order_id": "A-1001", "total": 99.5}' }

export const START_IN_SESSION_EXAMPLE: WorkflowStartIn = {
  context: 'The order A-1001 was cancelled.',
  session_id: SESSION_ID,
}

export const START_CONFIRMATION_EXAMPLE: WorkflowStartOut = {
  id: '01a1fd4e-f109-7162-9275-69e670388c60',
  workflow_id: WORKFLOW_ID,
  session_id: SESSION_ID,
}

const BODY_EXAMPLE = { order_id: 'X-0000', customer: 'Jane Doe', total: 0.5 }

export const VERIFICATION_EXAMPLE = {
  type: VERIFICATION_TYPE,
  organization_id: ORGANIZATION_EXAMPLE.id,
  source_id: '01890a5d-ac98-7c1e-b8f0-0a6a5b7c2d11',
  data: {
    target_url: 'https://shop.acme.test/webhooks/orders',
    signing_secret: 'whsec-example-3f9d1c7b5a2e8046',
    body_example: BODY_EXAMPLE,
  },
}

export const PAYLOAD_EXAMPLE: typeof BODY_EXAMPLE = { order_id: 'A-1001', customer: 'Ada Lovelace', total: 99.5 }

export const EVENT_EXAMPLE: RunEvent = {
  id: '01a1fd4e-f10c-7a3b-8d21-5b9e0f7a6c55',
  type: 'run.failed',
  organization_id: ORGANIZATION_EXAMPLE.id,
  created_at: '2026-01-31T09:00:02.000Z',
  text: 'A run of Forward orders failed: rule_failed',
  data: {
    at: '2026-01-31T09:00:00.125Z',
    run_id: '01a1fd4e-f109-7162-9275-69e670388c60',
    workflow_id: '01890a5d-ac96-774b-bcce-b302099a8057',
    session_id: '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44',
    error_code: 'rule_failed',
    delivery_id: null,
    source_id: null,
  },
}
