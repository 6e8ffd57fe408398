import type { OperationId } from '@workflow-service/contract'

const RUN_ID = '01a1fd4e-f109-7162-9275-69e670388c60'
const SESSION_ID = '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'
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
  getRun: `// Waits until the run has ended
const run = await client.runs.wait('${RUN_ID}')
console.log(run.status, run.error?.message, run.deliveries)`,
  getSession: `const session = await client.sessions.get('${SESSION_ID}')
console.log(session.runs.map((run) => run.status))`,
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
