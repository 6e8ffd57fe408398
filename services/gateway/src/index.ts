/**
 * The public API (contract README, "Public API"): authenticates API keys, limits rates, validates requests, reads
 * workflows and records starts. It runs no workflow and sends nothing to customers.
 */
export { type GatewayConfig, GatewaySettings, readGatewayConfig } from './config.ts'
export { startGateway } from './start-gateway.ts'
