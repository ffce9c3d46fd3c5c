import { randomUUID } from "node:crypto";
import type { ScheduledEvent } from "aws-lambda";
import * as z from "zod";

/** What EventBridge sends to the targets of a rule whose time has come. */

/** What is not named here is refused: a property that is passed over would look as if it held. */
export const RuleProperties = z.strictObject({
  ScheduleExpression: z.string().regex(/^(rate|cron)\(.+\)$/),
  State: z.literal("ENABLED"),
  Targets: z.array(
    z.strictObject({
      Arn: z.string(),
      Id: z.string(),
      RetryPolicy: z.strictObject({ MaximumRetryAttempts: z.int() }).optional(),
    }),
  ),
});

export type RuleSource = { readonly arn: string; readonly now: number };

export function toScheduledEvent({ arn, now }: RuleSource): ScheduledEvent {
  const [, , , region = "", account = ""] = arn.split(":");
  return {
    version: "0",
    id: randomUUID(),
    "detail-type": "Scheduled Event",
    source: "aws.events",
    account,
    time: new Date(now).toISOString().replace(/\.\d+Z$/, "Z"),
    region,
    resources: [arn],
    detail: {},
  };
}
