import type { SaveTriggerIn } from '@workflow-service/contract'

/** Makes the body that saves an active trigger of the kind `api`. */
export function triggerBody(values: Partial<SaveTriggerIn> = {}): SaveTriggerIn {
  return {
    version: null,
    subagent_sources: [],
    input_message: '',
    name: 'From the API',
    is_active: true,
    trigger_source: { slug: 'api', name: 'API' },
    events: [],
    filters: null,
    ...values,
  }
}
