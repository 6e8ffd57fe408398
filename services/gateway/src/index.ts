/**
 * The public API of the service (contract 4): it finds out whose key a request carries, limits its rate, checks it, reads
 * workflows and records starts. It runs no workflow and sends nothing to customers.
 */
export { type GatewayConfig, GatewaySettings, readGatewayConfig } from './config.ts'
export { type GatewayOverrides, type RunningGateway, startGateway } from './start-gateway.ts'
