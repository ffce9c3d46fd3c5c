import { Duration } from "aws-cdk-lib";
import { Alarm, ComparisonOperator, type IMetric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";

/**
 * What nobody would notice otherwise: nobody waits for an answer behind a queue. No action is attached to an alarm,
 * because whom to tell only the operator knows; a topic of theirs is attached to each after the deployment.
 */

const PERIOD = Duration.minutes(5);

/** Goes off when AWS ended a chain of invocations that kept coming back to the function. */
export function alarmAtLoop(handler: IFunction, { description }: AlarmTexts): void {
  const metric = handler.metric("RecursiveInvocationsDropped", { statistic: "Sum", period: PERIOD });
  addAlarm(handler, "LoopEnded", { metric, description });
}

/** Goes off when a queue of dead letters holds one, and until it is empty again. */
export function alarmAtDeadLetter(deadLetters: IQueue, { description }: AlarmTexts): void {
  const metric = deadLetters.metricApproximateNumberOfMessagesVisible({ statistic: "Maximum", period: PERIOD });
  addAlarm(deadLetters, "Arrived", { metric, description });
}

/** What the alarm means and what to do, in at most 1,024 characters. */
export type AlarmTexts = { readonly description: string };

/** AWS sends no data for what does not happen and for a queue that nobody uses: their absence is no alarm. */
function addAlarm(watched: IFunction | IQueue, id: string, props: AlarmTexts & { readonly metric: IMetric }): void {
  new Alarm(watched, id, {
    metric: props.metric,
    alarmDescription: props.description,
    threshold: 1,
    comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    evaluationPeriods: 1,
    treatMissingData: TreatMissingData.NOT_BREACHING,
  });
}
