import { expect, test } from "vitest";
import { MAX_HTTP_BODY_BYTES, PRODUCT_VERSION } from "../../../functions/contract/product.ts";
import manifest from "../../../package.json" with { type: "json" };

test("the product has the version of its package", () => {
  expect(PRODUCT_VERSION).toBe(manifest.version);
});

test("the longest body fits a synchronous Lambda event as base64, with headers of 10 KB", () => {
  expect(Math.ceil(MAX_HTTP_BODY_BYTES / 3) * 4 + 10_240).toBeLessThan(6_291_556);
});
