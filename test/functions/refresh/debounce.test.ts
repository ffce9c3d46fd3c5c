import { describe, expect, test } from "vitest";
import {
  bucketOf,
  type DebounceFacts,
  type DebounceRules,
  decide,
  deduplicationId,
  noteBucket,
  toDebounceRules,
} from "../../../functions/refresh/debounce.ts";

const RULES: DebounceRules = { windowMs: 1_000, delayMs: 1_500, longestWaitMs: 15_000, graceMs: 30_000 };
const facts = (changes: Partial<DebounceFacts>): DebounceFacts => ({
  bucket: 100,
  receivedAt: 101_600,
  now: 105_000,
  record: undefined,
  coveredUntil: 0,
  ...changes,
});

describe("a bucket", () => {
  test("holds the notifications of one window, by the queue's clock", () => {
    expect([99_999, 100_000, 100_999, 101_000].map((at) => bucketOf(at, RULES))).toEqual([99, 100, 100, 101]);
  });

  test("has one id, whoever sends and however often", () => {
    expect(deduplicationId("s1", bucketOf(100_001, RULES))).toBe(deduplicationId("s1", bucketOf(100_999, RULES)));
    expect(deduplicationId("s1", 1)).not.toBe(deduplicationId("s2", 1));
  });

  test("has its times from the operator's seconds", () => {
    expect(toDebounceRules({ debounceSeconds: 0.1, longestWaitSeconds: 15, delaySeconds: 0.2 })).toMatchObject({
      windowMs: 100,
      delayMs: 200,
      longestWaitMs: 15_000,
    });
  });
});

describe("the message of a bucket", () => {
  test("makes the list be fetched when nothing else is known", () => {
    expect(decide(facts({}), RULES)).toBe("fetch");
  });

  test("is answered by a fetch that began at the bucket's end, not by one a millisecond sooner", () => {
    expect(decide(facts({ coveredUntil: 101_000 }), RULES)).toBe("covered");
    expect(decide(facts({ coveredUntil: 100_999 }), RULES)).toBe("fetch");
  });

  test("is not answered by a fetch that is still to come: a clock was ahead and has gone back", () => {
    expect(decide(facts({ coveredUntil: 105_000 }), RULES)).toBe("covered");
    expect(decide(facts({ coveredUntil: 105_001 }), RULES)).toBe("fetch");
  });

  test("waits for the message of a newer bucket", () => {
    expect(decide(facts({ record: { newest: 101, pendingSince: 100_200 } }), RULES)).toBe("wait");
    expect(decide(facts({ record: { newest: 100, pendingSince: 100_200 } }), RULES)).toBe("fetch");
    expect(decide(facts({ record: { newest: 99, pendingSince: 99_200 } }), RULES)).toBe("fetch");
  });

  test("waits no longer once the newer one is overdue: it may be among the dead letters", () => {
    const record = { newest: 101, pendingSince: 200_000 };
    const due = 102_000 + RULES.delayMs + RULES.graceMs;
    expect(decide(facts({ record, receivedAt: due }), RULES)).toBe("wait");
    expect(decide(facts({ record, receivedAt: due + 1 }), RULES)).toBe("fetch");
  });

  test("waits no longer than the longest wait since the first notification that is not answered", () => {
    const record = { newest: 101, pendingSince: 90_000 };
    expect(decide(facts({ record, receivedAt: 104_999 }), RULES)).toBe("wait");
    expect(decide(facts({ record, receivedAt: 105_000 }), RULES)).toBe("fetch");
    expect(decide(facts({ record, receivedAt: 105_000, coveredUntil: 90_001 }), RULES)).toBe("wait");
  });
});

describe("the record", () => {
  test("keeps the newest bucket and the earliest time, in whatever order they come", () => {
    const notes = [100_100, 102_500, 101_300].map((sentAt) => ({ bucket: bucketOf(sentAt, RULES), sentAt }));
    for (const order of [notes, notes.toReversed()]) {
      const [first, ...rest] = order;
      const begun = noteBucket(undefined, first ?? expect.unreachable(), RULES);
      expect(rest.reduce((record, note) => noteBucket(record, note, RULES), begun)).toEqual({
        newest: 102,
        pendingSince: 100_100,
      });
    }
  });

  test("begins anew after a quiet in which everything noted must have been fetched", () => {
    const record = { newest: 100, pendingSince: 100_100 };
    const quiet = 101_000 + RULES.delayMs + RULES.graceMs;
    expect(noteBucket(record, { bucket: 132, sentAt: quiet }, RULES).pendingSince).toBe(100_100);
    expect(noteBucket(record, { bucket: 132, sentAt: quiet + 1 }, RULES)).toEqual({
      newest: 132,
      pendingSince: quiet + 1,
    });
  });
});
