import type * as z from "zod";
import { Fault } from "../contract/fault.ts";

/** What this folder keeps in the object store is JSON, read by the schema that it was written for. */

export const JSON_TYPE = "application/json";

export function toBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** `what` names the thing for people. Throws a `DEFECT` for bytes that are not such a thing. */
export function parseStored<T extends z.ZodType>(schema: T, bytes: Uint8Array, what: string): z.infer<T> {
  try {
    return schema.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch (error) {
    throw new Fault("DEFECT", `a stored ${what} cannot be read`, { cause: error });
  }
}
