import { expect, test } from "vitest";
import { findSignatureProblem } from "./sigv4.ts";

/** The presigned URL that AWS publishes as its worked example (S3 API reference, "Authenticating Requests: Query"). */
const CREDENTIALS = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const SIGNATURE = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
const SIGNED_AT = Date.UTC(2013, 4, 24);

function toRequest(signature: string) {
  const target =
    "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256" +
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request" +
    `&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=${signature}`;
  const headers = { host: "examplebucket.s3.amazonaws.com" };
  return { method: "GET", target, headers, body: new Uint8Array() };
}

test("accepts the example that AWS publishes", () => {
  expect(findSignatureProblem(toRequest(SIGNATURE), CREDENTIALS, SIGNED_AT)).toBeUndefined();
});

test("refuses the example with one digit changed", () => {
  const changed = toRequest(SIGNATURE.replace(/4$/, "5"));
  expect(findSignatureProblem(changed, CREDENTIALS, SIGNED_AT)).toBe("SignatureDoesNotMatch");
});

test("refuses the example once its day is over", () => {
  const request = toRequest(SIGNATURE);
  expect(findSignatureProblem(request, CREDENTIALS, SIGNED_AT + 86_399_999)).toBeUndefined();
  expect(findSignatureProblem(request, CREDENTIALS, SIGNED_AT + 86_400_000)).toBe("AccessDenied");
});
