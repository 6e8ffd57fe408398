import { runService } from '@workflow-service/service-kit'
import { readRunnerConfig } from './config.ts'
import { startRunner } from './start-runner.ts'

await runService(() => startRunner(readRunnerConfig()))
