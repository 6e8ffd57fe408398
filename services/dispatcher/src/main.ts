import { runService } from '@workflow-service/service-kit'
import { readDispatcherConfig } from './config.ts'
import { startDispatcher } from './start-dispatcher.ts'

await runService(() => startDispatcher(readDispatcherConfig()))
