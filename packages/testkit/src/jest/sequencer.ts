import testSequencer from '@jest/test-sequencer'

// Its types are those of the CommonJS build, in which the class is a property.
const Sequencer = testSequencer as unknown as typeof testSequencer.default

/**
 * Short files that take 20 s or more, longest first. Without durations of an earlier run, Jest begins with the longest
 * files and would run these last, when the other workers have ended.
 */
export const SLOW_FILES: readonly string[] = [
  'infra/trials/trials.test.ts',
  'packages/console/test/pages.test.ts',
  'infra/image.test.ts',
  'packages/console/test/failures.test.ts',
  'services/gateway/test/protocol.test.ts',
  'packages/messaging/test/connect-rabbitmq.test.ts',
  'infra/local-stack/test/local-stack.test.ts',
  'services/gateway/test/outages.test.ts',
  'services/runner/test/model.test.ts',
  'services/gateway/test/reference-page.test.ts',
  'services/runner/test/broker.test.ts',
  'services/dispatcher/test/dispatcher-killed.test.ts',
  'services/runner/test/tracing.test.ts',
  'packages/webhook-token/test/package.test.ts',
  'packages/dev-servers/test/start-embedded-postgres.test.ts',
  'services/runner/test/take-over.test.ts',
  'packages/client/test/package.test.ts',
  'infra/upgrade/previous-release.test.ts',
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
