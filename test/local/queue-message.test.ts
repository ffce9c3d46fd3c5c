import { describe, expect, test } from "vitest";
import { verifyMessage } from "../../local/queue-message.ts";
import "../kit/to-fail.ts";

const PLAIN = { fifo: false, maxBytes: 10 };
const FIFO = { fifo: true, maxBytes: 10 };
const ORDERED = { body: "one", group: "g", deduplicationId: "1" };

describe("a body", () => {
  test("may have as many bytes as the limit and not one more, whatever its characters", () => {
    verifyMessage({ body: "éé123456" }, PLAIN);
    expect(() => verifyMessage({ body: "éé1234567" }, PLAIN)).toFail("DEFECT");
    expect(() => verifyMessage({ body: "" }, PLAIN)).toFail("DEFECT");
  });

  test.each(["\t", "\n", "\r", " ", "\u007f", "\ud7ff", "\ue000", "\ufffd", "\u{10000}", "\u{10ffff}"])(
    "may hold %j",
    (character) => {
      expect(() => verifyMessage({ body: character }, PLAIN)).not.toThrow();
    },
  );

  test.each(["\u0000", "\u0008", "\u000b", "\u000c", "\u000e", "\u001f", "\ud800", "\udfff", "\ufffe", "\uffff"])(
    "may not hold %j anywhere",
    (character) => {
      for (const body of [character, `${character}a`, `a\n${character}\nb`]) {
        expect(() => verifyMessage({ body }, PLAIN)).toFail("DEFECT");
      }
    },
  );

  test("stays out of the message of its refusal", () => {
    expect(() => verifyMessage({ body: "secret\u0000" }, PLAIN)).toThrow(/^(?!.*secret)/);
  });
});

describe("group and deduplication id", () => {
  test("are both needed where order is kept", () => {
    verifyMessage(ORDERED, FIFO);
    expect(() => verifyMessage({ body: "one", group: "g" }, FIFO)).toFail("DEFECT");
    expect(() => verifyMessage({ body: "one", deduplicationId: "1" }, FIFO)).toFail("DEFECT");
  });

  test("promise what a queue without order does not keep, and are refused there", () => {
    expect(() => verifyMessage({ body: "one", group: "g" }, PLAIN)).toFail("DEFECT");
    expect(() => verifyMessage({ body: "one", deduplicationId: "1" }, PLAIN)).toFail("DEFECT");
  });

  test.each(["a.b_c-d", "~!", "x".repeat(128)])("may be %j", (id) => {
    verifyMessage({ ...ORDERED, group: id }, FIFO);
    verifyMessage({ ...ORDERED, deduplicationId: id }, FIFO);
  });

  test.each(["", " ", "a b", "s\u00001", "s\ud800", "ünïcode/sërver", "a\n", "x".repeat(129)])(
    "may not be %j",
    (id) => {
      expect(() => verifyMessage({ ...ORDERED, group: id }, FIFO)).toFail("DEFECT");
      expect(() => verifyMessage({ ...ORDERED, deduplicationId: id }, FIFO)).toFail("DEFECT");
    },
  );
});
