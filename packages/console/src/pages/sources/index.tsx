export { NewSourcePage } from './new-source-page.tsx'
export { SourcePage } from './source-page.tsx'
export { SourcesPage } from './sources-page.tsx'
