import type { SaveTriggerIn } from '@workflow-service/contract'

/** Makes the body that saves an active trigger of the kind `api`. */
export function triggerBody(values: Partial<SaveTriggerIn> = {}): SaveTriggerIn {
  return {
    name: 'From the API',
    is_active: true,
    trigger_source: { slug: 'api', name: 'API' },
    events: [],
    filters: null,
    input_message: '',
    subagent_sources: [],
    version: null,
    ...values,
  }
}
