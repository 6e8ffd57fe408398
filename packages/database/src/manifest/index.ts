/** Applies and exports manifests (packages/contract/MANIFEST.md). Apart from the rest, because services that only run workflows need no YAML. */
export type { ManifestChange, ManifestOutcome } from './apply-context.ts'
export { type AppliedManifest, type ApplyOptions, applyManifests } from './apply-manifests.ts'
export { type ExportOptions, exportManifest, ManifestTooLargeError, writeManifest } from './export-manifest.ts'
export { ManifestError, manifestErrors, toManifest } from './manifest-errors.ts'
export { ManifestOverwriteError, type PersonEdit, recordApplied } from './person-edits.ts'
