// Starts a runner as `main.ts` does, with the given intervals: `node runner-process.ts TIMING_AS_JSON`.
import { runService } from '@workflow-service/service-kit'
import { readRunnerConfig, type RunnerTiming, startRunner } from '../../src/index.ts'

const timing = JSON.parse(process.argv[2] ?? '{}') as Partial<RunnerTiming>
await runService(() => startRunner(readRunnerConfig(), { timing }))
