import { seedOrganization, seedWorkflows } from '@workflow-service/bench/seed'
import { type Attack, openExpectations, repeatFor, tally } from '../attack.ts'
import type { AttackTarget } from '../attack-target.ts'

const PARALLEL = 40
const WORKFLOWS = 1_500
/** The limit of a page, plus the largest document of this attack, which may exceed it. */
const MAX_PAGE_MIB = 3

/** Each of the 100 documents lists 4,000 users: 30 MB a page if nothing ends it. */
export const largePages: Attack = {
  name: 'large-pages',
  /** As many pages of the same size, of an organization whose large workflows have no users. */
  async sendOrdinary(target) {
    const organization = await seedOrganization(target.environment.client)
    await seedWorkflows(target.environment.client, organization, 50, { detailed: 1, description: 'x'.repeat(40_000) })
    const headers = { authorization: `Bearer ${organization.apiKey}` }
    await readPages({ ...target, headers }, Array<string>(PARALLEL).fill('/v1/workflows?limit=100'))
  },
  async prepare({ environment: { client }, attacker: { organizationId } }) {
    await client.query(
      `INSERT INTO users (id, organization_id, email, first_name, last_name)
       SELECT gen_random_uuid(), $1, 'attacker' || n || '@attack.test', 'First name', 'Last name ' || n
       FROM generate_series(1, 4000) n`,
      [organizationId],
    )
    await client.query(
      `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
       SELECT gen_random_uuid(), $1, 'Workflow ' || n, '', 'company_wide', true, 'workflow'
       FROM generate_series(1, 100) n`,
      [organizationId],
    )
  },
  async run(target) {
    const { expect, violations } = openExpectations()
    const pages = await readPages(target, Array<string>(PARALLEL).fill('/v1/workflows?limit=100'))
    const largestMiB = Math.max(...pages.map(({ bytes }) => bytes)) / 2 ** 20
    expect(largestMiB <= MAX_PAGE_MIB, `A page had ${largestMiB.toFixed(1)} MiB.`)
    const statuses = tally(pages.map(({ status }) => status))
    return {
      summary: `${PARALLEL} pages of 100 workflows, 4,000 users each: ${statuses}; at most ${largestMiB.toFixed(1)} MiB`,
      violations,
    }
  },
}

/** The index returns every workflow as a candidate, and none contains the text. */
export const searches: Attack = {
  name: 'searches',
  async prepare({ environment, attacker }) {
    const description = 'abcdefghijklmnopqrstuvwxyz '.repeat(740)
    await seedWorkflows(environment.client, attacker, WORKFLOWS, { detailed: 1, description })
  },
  async run(target, { seconds }) {
    const statuses: number[] = []
    await repeatFor({ seconds, connections: PARALLEL }, async () => {
      const text = `xyz abc${'defghijklm'.slice(0, statuses.length % 10)}q`
      const pages = await readPages(target, [`/v1/workflows?limit=100&search=${encodeURIComponent(text)}`])
      statuses.push(...pages.map(({ status }) => status))
    })
    const summary = `searches in ${WORKFLOWS} workflows of 20 kB, ${PARALLEL} at once: ${tally(statuses)}`
    return { summary, violations: [] }
  },
}

async function readPages(
  { services, headers }: Pick<AttackTarget, 'services' | 'headers'>,
  paths: readonly string[],
): Promise<{ status: number; bytes: number }[]> {
  return Promise.all(
    paths.map(async (path) => {
      const response = await fetch(services.gateway.url + path, { headers })
      return { status: response.status, bytes: (await response.arrayBuffer()).byteLength }
    }),
  )
}
