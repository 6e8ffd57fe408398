import type { OperationId } from '@workflow-service/contract'

const WORKFLOW_ID = '01890a5d-ac96-774b-bcce-b302099a8057'

/** How `@workflow-service/client` calls each operation. */
const CALLS: Readonly<Record<OperationId, string>> = {
  getOrganization: `const organization = await client.organization.get()
console.log(organization.name)`,
  listWorkflows: `// One page after the other, as far as you read
for await (const workflow of client.workflows.list({ search: 'order' })) {
  console.log(workflow.id, workflow.name)
}`,
  getWorkflow: `const workflow = await client.workflows.get('${WORKFLOW_ID}')
console.log(workflow.name, workflow.is_active)`,
  startWorkflow: `// The client makes an Idempotency-Key and repeats it when it retries
const started = await client.workflows.start('${WORKFLOW_ID}', {
  context: 'order_id: A-1001\\ncustomer: Ada Lovelace\\ntotal: 99.50',
})

// Once more, in the same session
await client.workflows.start('${WORKFLOW_ID}', {
  context: 'order_id: A-1002\\ncustomer: Ada Lovelace\\ntotal: 12.00',
  sessionId: started.session_id,
})`,
}

/** Creates the sample of an operation for the TypeScript client. */
export function createClientSample(id: OperationId, serverUrl: string): string {
  return `import { WorkflowClient } from '@workflow-service/client'

const client = new WorkflowClient({
  apiKey: process.env.WORKFLOW_API_KEY!,
  baseUrl: '${serverUrl}',
})

${CALLS[id]}`
}
