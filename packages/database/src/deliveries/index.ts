/** The log of outbound requests: claims, outcomes and reads. */
export {
  claimDeliveries,
  claimResend,
  type Delivery,
  type DeliveryClaim,
  type DeliveryClaimRequest,
  type DeliveryLease,
  type DeliveryOutcomeRecord,
  type DeliveryQuery,
  type DeliveryResult,
  type DeliveryTarget,
  findDeliveryState,
  listDeliveries,
  markAbandonedDeliveries,
  readRejectedAnswers,
  recordOutcomes,
  recordVerification,
  removeUnsentDelivery,
  type Resend,
  UNKNOWN_REASON,
} from './deliveries.ts'
export * from './delivery-reads.ts'
