import { runService } from '@workflow-service/service-kit'
import { readGatewayConfig } from './config.ts'
import { startGateway } from './start-gateway.ts'

await runService(async () => startGateway(readGatewayConfig()))
