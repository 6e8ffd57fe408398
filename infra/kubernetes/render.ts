import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

/** A manifest of Kubernetes, as far as every kind has the same shape. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; namespace?: string }
  readonly [field: string]: unknown
}

/** The fields of a kustomization.yaml that the files here use. */
export interface Kustomization {
  readonly namespace?: string
  readonly resources?: readonly string[]
  readonly components?: readonly string[]
  readonly replicas?: readonly { readonly name: string; readonly count: number }[]
  readonly images?: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[]
  readonly patches?: readonly {
    readonly target: { readonly kind: string; readonly name: string }
    readonly patch: string
  }[]
}

/** One operation of a JSON Patch (RFC 6902), of those that the files here use. */
interface Operation {
  readonly op: 'add' | 'replace'
  readonly path: string
  readonly value: unknown
}

const FIELDS = new Set(['apiVersion', 'kind', 'namespace', 'resources', 'components', 'replicas', 'images', 'patches'])

export function readManifests(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Manifest)
}

/**
 * Renders a folder's kustomization.yaml as `kubectl kustomize` does, which a fresh machine does not have.
 * @throws Error for a field or an operation that is not supported here.
 */
export function render(folder: string): Manifest[] {
  const kustomization = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as Kustomization
  return renderKustomization(folder, kustomization, [])
}

/** The same for a kustomization that is no file; `manifests` are those to which a component applies. */
export function renderKustomization(
  folder: string,
  kustomization: Kustomization,
  manifests: readonly Manifest[],
): Manifest[] {
  const unknown = Object.keys(kustomization).filter((field) => !FIELDS.has(field))
  if (unknown.length > 0) throw new Error(`${folder}: ${unknown.join(', ')} is not supported here`)
  const { namespace, resources = [], components = [], replicas = [], images = [], patches = [] } = kustomization
  const own = resources.flatMap((path) => {
    const file = join(folder, path)
    return statSync(file).isDirectory() ? render(file) : readManifests(file)
  })
  let all = structuredClone([...manifests, ...own])
  for (const path of components) {
    const component = parse(readFileSync(join(folder, path, 'kustomization.yaml'), 'utf8')) as Kustomization
    all = renderKustomization(join(folder, path), component, all)
  }
  for (const { target, patch } of patches) {
    const patched = all.find(({ kind, metadata }) => kind === target.kind && metadata.name === target.name)
    if (!patched) throw new Error(`${folder}: no ${target.kind} ${target.name} to patch`)
    for (const operation of parse(patch) as Operation[]) applyOperation(patched, operation)
  }
  for (const manifest of all) {
    if (namespace !== undefined) manifest.metadata.namespace = namespace
    if (manifest.kind !== 'Deployment' && manifest.kind !== 'Job') continue
    const spec = manifest['spec'] as { replicas?: number; template: { spec: { containers: { image: string }[] } } }
    const count = replicas.find(({ name }) => name === manifest.metadata.name)?.count
    if (count !== undefined) spec.replicas = count
    for (const container of spec.template.spec.containers) {
      const image = images.find(({ name }) => name === container.image)
      if (image) container.image = `${image.newName}:${image.newTag}`
    }
  }
  return all
}

function applyOperation(manifest: Manifest, { op, path, value }: Operation): void {
  const keys = path.split('/').slice(1)
  const last = keys.pop() ?? ''
  const parent = keys.reduce<unknown>((within, key) => (within as Record<string, unknown> | undefined)?.[key], manifest)
  if (op === 'add' && last === '-' && Array.isArray(parent)) parent.push(value)
  else if (op === 'replace' && Object.hasOwn(Object(parent) as object, last)) {
    const object = parent as Record<string, unknown>
    object[last] = value
  } else throw new Error(`The patch ${op} ${path} does not fit, or is not supported here`)
}
