import * as z from "zod";
import { type Resolution, type Resources, resolve, resourcesOf } from "./template.ts";

/**
 * What the role of a function lets it do, evaluated from the template as IAM evaluates it, as far as this template
 * needs it: statements that allow, wildcards, and the one condition in use. Anything else in a policy is refused, so
 * that nothing passes for allowed because it was not understood.
 */

export type Access = {
  /** `s3:PutObject` */
  readonly action: string;
  /** ARN */
  readonly resource: string;
  /** Of the request, such as `s3:prefix`. */
  readonly conditions?: ReadonlyMap<string, string>;
};
export type Permits = (access: Access) => boolean;

const many = z.union([z.string().transform((one) => [one]), z.array(z.string())]);
const Statement = z.strictObject({
  Sid: z.string().optional(),
  Effect: z.literal("Allow"),
  Action: many,
  Resource: many,
  Condition: z.strictObject({ StringLikeIfExists: z.record(z.string(), many) }).optional(),
});
type Statement = z.infer<typeof Statement>;
const Policy = z.object({ PolicyDocument: z.object({ Statement: z.array(Statement) }) });
const Role = z.object({ Policies: z.array(Policy).default([]), ManagedPolicyArns: z.never().optional() });
const Attached = Policy.extend({ Roles: z.array(z.string()) });

/** `role`: logical id. */
export function permissionsOf(role: string, resources: Resources, resolution: Resolution): Permits {
  const own = Role.parse(resolve(resources.get(role)?.Properties, resolution));
  const name = resolution.made.get(role)?.ref ?? "";
  const attached = resourcesOf(resources, "AWS::IAM::Policy")
    .map(([, properties]) => Attached.parse(resolve(properties, resolution)))
    .filter(({ Roles }) => Roles.includes(name));
  const statements = [...own.Policies, ...attached].flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
  return (access) => statements.some((statement) => allows(statement, access));
}

function allows({ Action, Resource, Condition }: Statement, { action, resource, conditions }: Access): boolean {
  const wanted = Object.entries(Condition?.StringLikeIfExists ?? {});
  return (
    Action.some((pattern) => matches(pattern.toLowerCase(), action.toLowerCase())) &&
    Resource.some((pattern) => matches(pattern, resource)) &&
    wanted.every(([key, patterns]) => {
      const value = conditions?.get(key);
      return value === undefined || patterns.some((pattern) => matches(pattern, value));
    })
  );
}

/** IAM's wildcards: `*` for any text, `?` for one character. */
export function matches(pattern: string, text: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`^${source}$`).test(text);
}
