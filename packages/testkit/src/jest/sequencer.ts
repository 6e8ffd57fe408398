import testSequencer from '@jest/test-sequencer'

// Its types are those of the CommonJS build, in which the class is a property.
const Sequencer = testSequencer as unknown as typeof testSequencer.default

/**
 * Files that take 11 s or more, slowest first. Without durations of an earlier run, Jest would begin with the longest
 * texts, and run some of these last, when the other workers have ended.
 */
export const SLOW_FILES: readonly string[] = [
  'infra/trials/trials.test.ts',
  'infra/image.test.ts',
  'packages/console/test/editing.test.ts',
  'packages/console/test/failures.test.ts',
  'packages/console/test/activity.test.ts',
  'packages/console/test/pages.test.ts',
  'packages/console/test/forms.test.ts',
  'packages/console/test/journeys.test.ts',
  'packages/console/test/frame.test.ts',
  'services/gateway/test/outages.test.ts',
  'packages/client/test/package.test.ts',
  'services/app/test/operations.test.ts',
  'services/app/test/notices.test.ts',
  'services/runner/test/take-over.test.ts',
  'infra/local-stack/test/local-stack.test.ts',
  'packages/messaging/test/connect-rabbitmq.test.ts',
  'infra/upgrade/previous-release.test.ts',
  'packages/python/test/package.test.ts',
  'services/app/test/resend-jobs.test.ts',
  'services/runner/test/model.test.ts',
  'services/runner/test/database-unavailable.test.ts',
  'services/gateway/test/reference-page.test.ts',
  'infra/monitoring/test/monitoring.test.ts',
]

/** Runs the slow files first, and the others in Jest's order. */
export default class SlowFilesFirst extends Sequencer {
  override async sort(tests: Parameters<(typeof Sequencer)['prototype']['sort']>[0]) {
    // oxlint-disable-next-line unicorn/no-array-sort -- Jest's method of this name, which makes a new array
    return (await super.sort(tests)).toSorted((a, b) => rankOf(a) - rankOf(b))
  }
}

function rankOf({ path }: { readonly path: string }): number {
  const rank = SLOW_FILES.findIndex((file) => path.endsWith(`/${file}`))
  return rank === -1 ? SLOW_FILES.length : rank
}
