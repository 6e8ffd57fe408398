/**
 * Applies and exports manifests (packages/contract/MANIFEST.md). Apart from the rest, because services that only run
 * workflows need no YAML.
 */
export type { ManifestChange } from './apply-context.ts'
export { type AppliedManifest, applyManifests, type ApplyOptions, ManifestOverwriteError } from './apply-manifests.ts'
export { exportManifest, ManifestTooLargeError, writeManifest } from './export-manifest.ts'
export { ManifestError, manifestErrors, toManifest } from './manifest-errors.ts'
export { toRawJson } from './manifest-writer.ts'
export { type PersonEdit, recordApplied } from './person-edits.ts'
