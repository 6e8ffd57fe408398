import { runService } from '@workflow-service/service-kit'
import { readCompactConfig } from './config.ts'
import { startCompact } from './start-compact.ts'

await runService(() => startCompact(readCompactConfig()))
