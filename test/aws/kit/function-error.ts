import * as z from "zod";

/** What Lambda says of an invocation that failed, and what it says to whoever asked for it. */

const FunctionError = z.object({ errorType: z.string(), errorMessage: z.string() });
export type FunctionError = z.infer<typeof FunctionError>;

/** As the runtime posts it. Throws when it is something else. */
export function readFunctionError(json: string): FunctionError {
  return FunctionError.parse(JSON.parse(json));
}
