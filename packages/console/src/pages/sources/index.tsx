export { NewSourcePage, SourcePage } from './source-page.tsx'
export { SourcesPage } from './sources-page.tsx'
