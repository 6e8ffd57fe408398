import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1'
import { Deployment, type IDeployment } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { Job } from 'kubernetes-models/batch/v1'
import { type INetworkPolicy, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { Namespace, Service } from 'kubernetes-models/v1'
import { registerSystemMetrics, Registry } from '../../packages/service-kit/src/index.ts'
import { createRunnerMetrics } from '../../services/runner/src/metrics.ts'
import { SERVICE_NAMES, SERVICE_SETTINGS, type ServiceName, settingsOf } from '../service-settings.ts'
import { type Manifest, readManifests, render, renderKustomization } from './render.ts'

const here = import.meta.dirname
const root = join(here, '../..')

/** Their validators are compiled from the schemas that Kubernetes and KEDA publish. */
const MODELS = [
  Deployment,
  HorizontalPodAutoscaler,
  Job,
  Namespace,
  NetworkPolicy,
  PodDisruptionBudget,
  ScaledObject,
  Service,
] as unknown as readonly Model[]

interface Model {
  readonly apiVersion: string
  readonly kind: string
  /**
   * `validate` throws if its `this` does not match the schema. The constructor makes a copy, which reads every field.
   */
  readonly prototype: { validate(): void }
}

type PodTemplate = NonNullable<IDeployment['spec']>['template']
type Policy = NonNullable<INetworkPolicy['spec']>

const WITH_COMPONENTS = { resources: ['small'], components: globSync('components/*', { cwd: here }).toSorted() }
const migration = render(join(here, 'migration'))
const small = render(join(here, 'small'))
const large = render(join(here, 'large'))
const complete = renderKustomization(here, WITH_COMPONENTS, [])
const RENDERED = Object.entries({ migration, small, large, 'small with every component': complete })
const OVERLAYS = RENDERED.slice(1)

describe('the manifests', () => {
  test.each([...RENDERED, ['namespace.yaml', readManifests(join(here, 'namespace.yaml'))]] as typeof RENDERED)(
    'of %s match the published schemas, and have no unknown field',
    (_name, manifests) => {
      const errors = manifests.flatMap((manifest) => {
        const { apiVersion, kind, metadata } = manifest
        const model = MODELS.find((each) => each.apiVersion === apiVersion && each.kind === kind)
        const found = model ? check(model, manifest) : [`no schema for ${apiVersion}`]
        return found.map((error) => `${kind} ${metadata.name}: ${error}`)
      })
      expect(manifests.length).toBeGreaterThan(0)
      expect(errors).toEqual([])
    },
  )

  test.each(RENDERED)('of %s are of the version in package.json', (_name, manifests) => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    const images = podsOf(manifests).map(({ template }) => containerOf(template).image)
    expect(new Set(images.map((image) => image?.split(':')[1]))).toEqual(new Set([version]))
  })

  test('are all part of an overlay', () => {
    const rendered = new Set(RENDERED.flatMap(([, manifests]) => manifests.map(keyOf)))
    const files = globSync('*/**/*.yaml', { cwd: here }).filter((file) => basename(file) !== 'kustomization.yaml')
    const written = files.flatMap((file) => readManifests(join(here, file)).map(keyOf))
    expect(written.filter((name) => !rendered.has(name))).toEqual([])
  })

  test.each(RENDERED)('of %s lock every pod down', (_name, manifests) => {
    for (const { template } of podsOf(manifests)) {
      expect(template.spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
            resources: { requests: expect.anything(), limits: { memory: expect.any(String) } },
          },
        ],
      })
    }
  })
})

describe.each(OVERLAYS)('the overlay %s', (_overlay, manifests) => {
  test.each(SERVICE_NAMES)('gives the %s settings that it reads, and every required one', (name) => {
    const environment = environmentOf(manifests, name)
    const settings = settingsOf(name)
    const known = settings.map((setting) => setting.name)
    expect(known).toEqual(expect.arrayContaining(Object.keys(environment)))
    expect(Object.keys(environment)).toEqual(
      expect.arrayContaining(settings.filter(({ isRequired }) => isRequired).map((setting) => setting.name)),
    )
    expect(() => SERVICE_SETTINGS[name].read(environment)).not.toThrow()
  })

  test.each(SERVICE_NAMES)('gives the %s its secrets, and nothing else, by reference', (name) => {
    const isSecret = new Set(settingsOf(name).flatMap((setting) => (setting.isSecret ? [setting.name] : [])))
    const { env: variables = [] } = containerOf(podOf(manifests, name))
    const wrong = variables.filter(
      (each) => (each.valueFrom?.secretKeyRef?.name !== undefined) !== isSecret.has(each.name),
    )
    expect(wrong).toEqual([])
    // PgBouncer passes no notifications on, which only the application reads.
    const { secretKeyRef: database } = variables.find((each) => each.name === 'DATABASE_URL')!.valueFrom!
    expect(database?.key).toBe(name === 'app' ? 'MIGRATION_DATABASE_URL' : 'DATABASE_URL')
  })

  test.each(SERVICE_NAMES)('starts the %s, and checks it at the port of /readyz', (name) => {
    const { args = [], ports = [], ...container } = containerOf(podOf(manifests, name))
    expect(existsSync(join(root, args.slice(1).find((arg) => !arg.startsWith('--')) ?? ''))).toBe(true)
    const settings = settingsOf(name).filter((setting) => ['PORT', 'METRICS_PORT'].includes(setting.name))
    expect(ports.map(({ containerPort }) => containerPort)).toEqual(settings.map(({ defaultValue }) => defaultValue))
    const all = [container.startupProbe, container.livenessProbe, container.readinessProbe]
    const probes = all.map((probe) => [probe?.httpGet?.path, probe?.httpGet?.port])
    const port = settings.length === 2 ? 'metrics' : 'http'
    expect(probes).toEqual([
      ['/healthz', port],
      ['/healthz', port],
      ['/readyz', port],
    ])
  })

  test.each(SERVICE_NAMES)('gives the %s the time to end the work under way', (name) => {
    const delay = Number(environmentOf(manifests, name)['SHUTDOWN_DELAY_SECONDS'] ?? 0)
    expect(podOf(manifests, name).spec?.terminationGracePeriodSeconds).toBeGreaterThan(delay + 35)
  })

  // The dispatcher closes unused connections after 5 s. Nothing connects to a runner but Prometheus.
  test.each(['gateway', 'dispatcher', 'app'] as const)('stops the %s only when load balancers have noticed', (name) => {
    const { periodSeconds, failureThreshold = 3 } = containerOf(podOf(manifests, name)).readinessProbe ?? {}
    const delay = Number(environmentOf(manifests, name)['SHUTDOWN_DELAY_SECONDS'])
    expect(delay).toBeGreaterThan(Math.max(5, periodSeconds! * failureThreshold))
  })

  test('lets one pod of a service at a time be evicted', () => {
    const budgets = manifests.filter(({ kind }) => kind === 'PodDisruptionBudget')
    expect(budgets.map(({ metadata, spec }) => [metadata.name, spec])).toEqual(
      SERVICE_NAMES.map((name) => [
        name,
        { maxUnavailable: 1, selector: { matchLabels: podOf(manifests, name).metadata?.labels } },
      ]),
    )
  })

  test('scales what exists, and sets no number of what is scaled', () => {
    const scaled = manifests
      .filter(({ kind }) => kind === 'HorizontalPodAutoscaler' || kind === 'ScaledObject')
      .map(({ spec }) => (spec as { scaleTargetRef: { name: string } }).scaleTargetRef.name)
    const fixed = podsOf(manifests).flatMap(({ name, replicas }) => (replicas === undefined ? [] : [name]))
    expect([...scaled, ...fixed].toSorted()).toEqual(SERVICE_NAMES.toSorted())
  })
})

describe('the network policies', () => {
  test('let only the dispatcher leave the cluster, and a component only the service that it is for', () => {
    expect(leavesCluster(small)).toEqual(['dispatcher'])
    expect(leavesCluster(large)).toEqual(['dispatcher'])
    expect(leavesCluster(complete)).toEqual(['dispatcher', 'app', 'runner', 'app'])
  })

  test('deny every pod what no policy allows', () => {
    const [first] = policiesOf(small)
    expect(first).toEqual({
      podSelector: { matchLabels: { 'app.kubernetes.io/part-of': 'workflow-service' } },
      policyTypes: ['Ingress', 'Egress'],
    })
  })

  test('let only monitoring reach the ports of metrics, beside the callers of the dispatcher', () => {
    const metricsPorts = [8081, 8082, 9080, 9083]
    const reaching = policiesOf(small).flatMap(({ podSelector, ingress = [] }) =>
      ingress
        .filter(({ ports }) => !ports || ports.some(({ port }) => metricsPorts.includes(Number(port))))
        .map(({ from }) => [podSelector?.matchLabels?.['app.kubernetes.io/name'], from]),
    )
    expect(reaching).toEqual([
      [undefined, [{ namespaceSelector: { matchLabels: { 'workflow-service/role': 'monitoring' } } }]],
      ['dispatcher', [podsNamed('runner'), podsNamed('app')]],
    ])
  })
})

test('the runners are scaled by metrics that they export', async () => {
  const registry = new Registry()
  createRunnerMetrics(registry, 1, { size: 0 })
  registerSystemMetrics(registry, {
    isReporter: async () => true,
    backlog: async () => ({ sessions: 0, oldestWaitMs: null }),
    queueDepth: async () => ({ ready: 0, dead: 0 }),
  })
  const exported = registry.getMetricsAsArray().map(({ name }) => name)
  const scaledObject = large.find(({ kind }) => kind === 'ScaledObject')
  const { triggers } = scaledObject!['spec'] as { triggers: { metadata: { query: string } }[] }
  const used = triggers.flatMap(({ metadata }) => metadata.query.match(/[a-z]+_[a-z_]+/g) ?? [])
  expect(used).toEqual(['sessions_waiting', 'runner_leases_held', 'sessions_waiting_oldest_seconds'])
  expect(exported).toEqual(expect.arrayContaining(used))
})

/**
 * Also finds fields that a schema does not have, which the API server would drop: those that the validator never reads.
 */
function check(model: Model, manifest: Manifest): string[] {
  const readPaths = new Set<string>()
  const watch = (value: unknown, path: string): unknown =>
    typeof value === 'object' && value !== null
      ? new Proxy(value, {
          get(target, key) {
            readPaths.add(`${path}/${String(key)}`)
            return watch(Reflect.get(target, key), `${path}/${String(key)}`)
          },
        })
      : value
  const unknownIn = (value: unknown, path: string): string[] =>
    Object.entries(Object(value) as object).flatMap(([key, inner]) => {
      const innerPath = `${path}/${key}`
      if (!readPaths.has(innerPath)) return [`${innerPath} is unknown`]
      return typeof inner === 'object' ? unknownIn(inner, innerPath) : []
    })
  try {
    model.prototype.validate.call(watch(manifest, ''))
  } catch (error) {
    return [String(error)]
  }
  return unknownIn(manifest, '')
}

function keyOf({ kind, metadata }: Manifest): string {
  return `${kind} ${metadata.name}`
}

function policiesOf(manifests: readonly Manifest[]): Policy[] {
  return manifests.filter(({ kind }) => kind === 'NetworkPolicy').map(({ spec }) => spec as Policy)
}

function podsNamed(name: string): object {
  return {
    podSelector: { matchLabels: { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'workflow-service' } },
  }
}

/** The services whose policies allow addresses outside of the cluster. */
function leavesCluster(manifests: readonly Manifest[]): (string | undefined)[] {
  return policiesOf(manifests)
    .filter(({ egress = [] }) => egress.some(({ to }) => !to || to.some(({ ipBlock }) => ipBlock)))
    .map(({ podSelector }) => podSelector?.matchLabels?.['app.kubernetes.io/name'])
}

function podsOf(
  manifests: readonly Manifest[],
): { name: string; replicas: number | undefined; template: PodTemplate }[] {
  return manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map(({ metadata, spec }) => {
      const { replicas, template } = spec as { replicas?: number; template: PodTemplate }
      return { name: metadata.name, replicas, template }
    })
}

function podOf(manifests: readonly Manifest[], service: ServiceName): PodTemplate {
  const found = podsOf(manifests).find(({ name }) => name === service)
  if (!found) throw new Error(`There is no Deployment ${service}`)
  return found.template
}

function containerOf({ spec }: PodTemplate) {
  const [container] = spec?.containers ?? []
  if (!container) throw new Error('The pod has no container')
  return container
}

/** The environment of a container, with the example of each secret. */
function environmentOf(manifests: readonly Manifest[], service: ServiceName): Record<string, string> {
  const examples = new Map(settingsOf(service).map(({ name, example }) => [name, example]))
  const { env: variables = [] } = containerOf(podOf(manifests, service))
  const madeSecret: Record<string, string> = {
    INTERNAL_API_TOKEN: 'x'.repeat(32),
    SECRETS_KEY: Buffer.alloc(32).toString('base64'),
  }
  return Object.fromEntries(
    variables.map(({ name, value }) => [name, value ?? madeSecret[name] ?? examples.get(name) ?? '']),
  )
}
