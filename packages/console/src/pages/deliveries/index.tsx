export { DeliveryDrawer, DeliveryPage } from './delivery-page.tsx'
export { SourceLogPage } from './source-log-page.tsx'
