/** Facts about the product itself. */

/** Kept equal to `package.json` by a test. */
export const PRODUCT_VERSION = "0.1.0";

/** Time to answer that a request took too long, before its function ends, in ms. */
export const ANSWER_MS = 1_000;

/**
 * Longest request body in bytes. A synchronous Lambda takes 6,291,556 bytes of event, and a body may arrive as base64,
 * a third longer, beside headers. A text body arrives escaped: one of little else than quotes can be refused by API
 * Gateway, with its own 413, from about 3.1 MB on.
 */
export const MAX_HTTP_BODY_BYTES = 4_500_000;
