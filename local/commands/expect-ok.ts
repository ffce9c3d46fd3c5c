import * as z from "zod";
import { Fault, isFaultCode } from "../../functions/contract/fault.ts";
import { ViolationSchema } from "../../functions/contract/job.ts";
import type { ApiAnswer } from "../api-client.ts";

const Problem = z.object({ code: z.string(), detail: z.string(), errors: z.array(ViolationSchema).optional() });

/** What API Gateway itself answers, before it asks the service. */
const GatewayMessage = z.object({ message: z.string() });

/**
 * The body of a successful answer; a problem document becomes the `Fault` it tells of, with its violations in the
 * message.
 */
export function expectOk({ status, body }: ApiAnswer): unknown {
  if (status >= 200 && status < 400) return body;
  const problem = Problem.safeParse(body);
  if (!problem.success) throw toGatewayFault(status, body);
  const { code, detail, errors = [] } = problem.data;
  // One violation stands in the detail already.
  const listed = errors.filter(({ message }) => errors.length > 1 || !detail.includes(message));
  const lines = listed.map(({ path, message }) => `\n  ${path || "/"}: ${message}`).join("");
  throw new Fault(isFaultCode(code) ? code : "DEFECT", detail + lines, { violations: errors });
}

/** The body of a successful answer in the shape expected; `SERVER_UNAVAILABLE` for any other. */
export function expectBody<T extends z.ZodType>(answer: ApiAnswer, schema: T): z.infer<T> {
  const parsed = schema.safeParse(expectOk(answer));
  if (parsed.success) return parsed.data;
  const message = `the service answered ${answer.status} with something else than expected; is the endpoint right, and of this version?`;
  throw new Fault("SERVER_UNAVAILABLE", message, { cause: parsed.error });
}

function toGatewayFault(status: number, body: unknown): Fault {
  const said = GatewayMessage.safeParse(body);
  const reason = said.success ? `: ${said.data.message}` : "";
  if (status === 401 || status === 403) {
    return new Fault("ACCESS_DENIED", `the endpoint answered ${status}${reason}; may your AWS credentials invoke it?`);
  }
  return new Fault("SERVER_UNAVAILABLE", `the endpoint answered ${status}${reason}; is the endpoint right?`);
}
