import * as z from "zod";

const BatchResponse = z.object({
  batchItemFailures: z.array(z.object({ itemIdentifier: z.string().min(1) })).nullish(),
});

/**
 * Ids of the messages that Lambda takes for failed after such an answer: those named; none for null, an empty object or
 * an empty list; all of them for an answer of another shape and for one that names what is not in the batch.
 */
export function readBatchResponse(answer: unknown, ids: readonly string[]): ReadonlySet<string> {
  if (answer === null || answer === "") return new Set();
  const parsed = BatchResponse.safeParse(answer);
  if (!parsed.success) return new Set(ids);
  const named = (parsed.data.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier);
  return new Set(named.every((id) => ids.includes(id)) ? named : ids);
}
