import * as z from "zod";

/** Who is let in: a setting of the operator's that functions read as well. */

/** Groups of routes that are allowed one by one. */
export const ROUTE_GROUPS = ["run", "read", "notify", "operate"] as const;
export type RouteGroup = (typeof ROUTE_GROUPS)[number];

/** RFC 6749, 3.3: printable, without space, quote and backslash. */
const Scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/, "a scope without spaces expected");

/** Compared with what stands in a token, so that a blank which nobody sees would let nobody in. */
const Issuer = z
  .string()
  .max(500)
  .refine(isIssuer, "an https URL without blanks, user, password, query and fragment expected, as the tokens have it");

/** OpenID Connect Discovery, 2: neither query nor fragment. Its keys are fetched without a name and a password. */
function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || /[\s?#]/.test(text)) return false;
  return url.protocol === "https:" && url.username === "" && url.password === "";
}

const Audience = z
  .string()
  .max(200)
  .regex(/^\S(?:.*\S)?$/, "a text that neither is blank nor begins or ends with a blank expected");

/**
 * Callers bring a token of this issuer; each group of routes wants a scope of its own. All of it fits into the
 * environment of a function, which has 4 KiB.
 */
export const JwtAuth = z.strictObject({
  issuer: Issuer,
  audience: z
    .array(Audience)
    .min(1, "at least one audience expected")
    .max(8)
    .refine((all) => new Set(all).size === all.length, "each audience once expected"),
  scopes: z
    .strictObject({
      run: Scope.default("skillbroker/run"),
      read: Scope.default("skillbroker/read"),
      notify: Scope.default("skillbroker/notify"),
      operate: Scope.default("skillbroker/operate"),
    })
    .prefault({}),
});
export type JwtAuth = z.infer<typeof JwtAuth>;

const AuthName = z.enum(["iam", "none"], { error: '"iam", "none" or an object with issuer and audience expected' });
export const AuthMode = z.union([AuthName, JwtAuth]);
export type AuthMode = z.infer<typeof AuthMode>;
