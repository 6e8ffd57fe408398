/** What a notice of the event stream can name: the page reads again what it shows of it. */
export const EVENT_TOPICS = [
  'workflows',
  'webhook_sources',
  'lookups',
  'deliveries',
  'runs',
  'sessions',
  'api_keys',
  'users',
  'organization',
] as const
export type EventTopic = (typeof EVENT_TOPICS)[number]
