import { Fault } from "../functions/contract/fault.ts";
import type { QueueMessage } from "../functions/contract/ports.ts";

/** What SQS would refuse to keep is refused here too: a message that passes on one machine passes in the cloud. */

export type QueueMessageRules = {
  /** The queue keeps the order of each group, and drops duplicates. */
  readonly fifo: boolean;
  /** Of the body in UTF-8. */
  readonly maxBytes: number;
};

export const MAX_BODY_BYTES = 262_144;

/**
 * What XML 1.0 cannot carry, which SQS inherited: most control characters, halves of surrogate pairs, U+FFFE, U+FFFF.
 */
const UNCARRIED = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
/** SQS's letters for the ids of groups and duplicates: visible ASCII. */
const ID = /^[\x21-\x7e]{1,128}$/;

/** Throws a `DEFECT`: who sends checks its input before, so such a message is a mistake in the code. */
export function verifyMessage({ body, group, deduplicationId }: QueueMessage, rules: QueueMessageRules): void {
  if (body === "") fail("has no body");
  if (Buffer.byteLength(body) > rules.maxBytes) fail(`has a body of more than ${rules.maxBytes} bytes`);
  if (UNCARRIED.test(body)) fail("has a character in its body that XML 1.0 cannot carry");
  if (rules.fifo) {
    verifyId("group", group);
    verifyId("deduplication id", deduplicationId);
  } else if (group !== undefined || deduplicationId !== undefined) {
    fail("names a group or a deduplication id, and the queue neither keeps order nor drops duplicates");
  }
}

function verifyId(what: string, id: string | undefined): void {
  if (id === undefined || !ID.test(id)) fail(`needs a ${what} of 1 to 128 visible ASCII characters`);
}

function fail(problem: string): never {
  throw new Fault("DEFECT", `a message for the queue ${problem}`);
}
