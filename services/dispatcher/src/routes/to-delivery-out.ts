import { DeliveryOut } from '@workflow-service/contract'

const FIELDS = Object.keys(DeliveryOut.properties) as (keyof DeliveryOut)[]

/** Returns the fields of the contract and no others: agents read them, and a log entry has more, for people. */
export function toDeliveryOut(delivery: DeliveryOut): DeliveryOut {
  return Object.fromEntries(FIELDS.map((field) => [field, delivery[field]])) as DeliveryOut
}
