import { runService } from '@workflow-service/service-kit'
import { readAppConfig } from './config.ts'
import { startApp } from './start-app.ts'

await runService(async () => startApp(readAppConfig()))
