/** The manifest of an organization with a person, an API key, and a workflow that a start of the API fires. */
export function forwardManifest(organizationId: string, workflow: { description: string; files?: object[] }): object {
  return {
    organization: { id: organizationId, name: 'Acme' },
    users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }],
    api_keys: [{ name: 'ci', scopes: ['read', 'start'] }],
    workflows: [
      {
        name: 'Forward',
        scope: 'company_wide',
        is_active: true,
        triggers: [{ name: 'API', is_active: true, trigger_source: { slug: 'api', name: 'API' } }],
        ...workflow,
      },
    ],
  }
}
