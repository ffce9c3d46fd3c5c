import * as z from "zod";
import { FAULTS, Fault } from "../../functions/contract/fault.ts";
import { ViolationSchema } from "../../functions/contract/job.ts";
import type { ApiAnswer } from "../api-client.ts";

const Problem = z.object({
  code: z.enum(Object.keys(FAULTS)),
  detail: z.string(),
  errors: z.array(ViolationSchema).optional(),
});

/** The body of a successful answer; a problem document becomes the `Fault` it tells of, with its violations in the message. */
export function expectOk({ status, body }: ApiAnswer): unknown {
  if (status >= 200 && status < 400) return body;
  const problem = Problem.safeParse(body);
  if (!problem.success)
    throw new Fault(
      "SERVER_UNAVAILABLE",
      `the service answered ${status}; is the endpoint right, and are you allowed?`,
    );
  const { code, detail, errors = [] } = problem.data;
  const lines = errors.map(({ path, message }) => `\n  ${path}: ${message}`).join("");
  throw new Fault(isFaultCode(code) ? code : "DEFECT", detail + lines, { violations: errors });
}

function isFaultCode(code: string): code is keyof typeof FAULTS {
  return Object.hasOwn(FAULTS, code);
}
