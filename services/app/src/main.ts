import { runService } from '@workflow-service/service-kit'
import { readAppConfig } from './config.ts'
import { startApp } from './start-app.ts'

await runService(async () => startApp(readAppConfig()))
// CEL takes 130 ms to load: the first check of rules would make all other requests wait.
await import('@workflow-service/rules')
