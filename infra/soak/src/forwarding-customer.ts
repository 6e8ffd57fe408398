import { createWorkflow, saveSource } from '@workflow-service/bench/customer'
import type { Environment, Service } from '@workflow-service/bench/environment'
import { seedOrganization, type SeededOrganization } from '@workflow-service/bench/seed'

/** A customer whose workflow posts to two sources, one after the other. */
export interface ForwardingCustomer extends SeededOrganization {
  readonly name: string
  readonly workflowId: string
  /** The first of the two sources. */
  readonly sourceId: string
  readonly paths: readonly [string, string]
}

/** Creates a customer whose sources have these paths of the endpoint. */
export async function createForwardingCustomer(
  environment: Environment,
  dispatcher: Service,
  { name, endpointUrl, paths }: { name: string; endpointUrl: string; paths: readonly [string, string] },
): Promise<ForwardingCustomer> {
  const organization = await seedOrganization(environment.client)
  const save = async (sourceName: string, path: string): Promise<string> => {
    const { sourceId, status, text } = await saveSource(environment, dispatcher, organization, {
      name: sourceName,
      endpointUrl: endpointUrl + path,
      example: { message: 'text' },
      isVerified: false,
    })
    if (status !== 201) throw new Error(`The webhook source was not saved: ${text}`)
    return sourceId
  }
  const sourceId = await save('Order intake', paths[0])
  await save('Audit log', paths[1])
  const description = 'Post to Order intake, then to Audit log.'
  const workflowId = await createWorkflow(environment.client, organization.organizationId, description)
  return { ...organization, name, workflowId, sourceId, paths }
}
