import type { Database } from './client.ts'

/** An organization in a list for an operator to choose from. */
export interface OrganizationName {
  id: string
  name: string
  isSuspended: boolean
}

/** The first organizations by name, for an operator to choose from. */
export async function listOrganizations(
  db: Pick<Database, 'prisma'>,
  options: { limit: number },
): Promise<OrganizationName[]> {
  return await db.prisma.organization.findMany({
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: options.limit,
    select: { id: true, name: true, isSuspended: true },
  })
}

/** The organization with this id, or those with this name, at most `limit`. */
export async function findOrganizations(
  db: Pick<Database, 'prisma'>,
  wanted: { id: string } | { name: string },
  options: { limit: number },
): Promise<OrganizationName[]> {
  return await db.prisma.organization.findMany({
    where: wanted,
    orderBy: { id: 'asc' },
    take: options.limit,
    select: { id: true, name: true, isSuspended: true },
  })
}

/** The names of these workflows, by id. */
export async function findWorkflowNames(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  workflowIds: readonly string[],
): Promise<Map<string, string>> {
  const found = await db.prisma.workflow.findMany({
    where: { organizationId, id: { in: [...new Set(workflowIds)] } },
    select: { id: true, name: true },
  })
  return new Map(found.map(({ id, name }) => [id, name]))
}
