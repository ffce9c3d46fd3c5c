import type { Context } from "aws-lambda";

export type Invocation = {
  readonly requestId: string;
  readonly functionName: string;
  /** Asked each time. */
  readonly remainingMs: () => number;
};

/** What Lambda tells a handler about itself, for a handler that runs on one machine. */
export function toLambdaContext({ requestId, functionName, remainingMs }: Invocation): Context {
  return {
    awsRequestId: requestId,
    callbackWaitsForEmptyEventLoop: false,
    functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${functionName}`,
    logGroupName: "local",
    logStreamName: "local",
    memoryLimitInMB: "1024",
    getRemainingTimeInMillis: remainingMs,
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}
