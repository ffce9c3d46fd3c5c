import { type Outcome, refuse, succeed } from "../contract/fault.ts";
import { JobMessage } from "../contract/job.ts";
import { parseStrictJson } from "../contract/json.ts";

/** What stands in a queue may have been put there by anybody who may send: it is read as a request is. */
export function readJobMessage(body: string): Outcome<JobMessage> {
  const json = parseStrictJson(body, { maxDepth: 4 });
  if (!json.ok) return json;
  const parsed = JobMessage.safeParse(json.value);
  return parsed.success ? succeed(parsed.data) : refuse("REQUEST_INVALID", "the message names no job");
}
