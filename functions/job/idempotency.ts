import * as z from "zod";
import { Fault, isFaultCode, type Outcome, refuse, succeed } from "../contract/fault.ts";
import { ErrorSchema, type JobRecord, type JobRequest } from "../contract/job.ts";
import { digestOfJson, sha256Hex } from "../contract/json.ts";
import type { Clock, ObjectStore, PutCondition, PutResult, RandomBytes } from "../contract/ports.ts";
import { IDEMPOTENCY_PREFIX } from "../contract/store-layout.ts";
import { createJobId } from "./ids.ts";
import { asOfNow, type JobIdentity } from "./job-record.ts";
import { getJob } from "./job-store.ts";
import { JSON_TYPE, parseStored, toBytes } from "./stored-json.ts";

/**
 * One job for one `Idempotency-Key`. Whoever writes the claim first runs the job, under an id that the claim names; all
 * others find the job's record by that id, or find that it is still under way. The claim is a lease: a runner that died
 * leaves it to the next one, which runs under the same id, so that two runners can never leave two jobs.
 */

const Claim = z.discriminatedUnion("state", [
  z.object({
    state: z.literal("held"),
    request_digest: z.string(),
    job_id: z.string(),
    created_at: z.iso.datetime(),
    lease_until: z.iso.datetime(),
    /** A tool of a server may have been called for the job. */
    called_servers: z.boolean(),
  }),
  /** The job ran and was refused: its answer was too large to be given. */
  z.object({ state: z.literal("refused"), request_digest: z.string(), error: ErrorSchema }),
  /** Nothing ran: the key is as good as new. */
  z.object({ state: z.literal("released") }),
]);
type Claim = z.infer<typeof Claim>;
type HeldClaim = Extract<Claim, { state: "held" }>;

export type ClaimContext = {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  /** How long nobody else may run the job, ms; longer than whoever runs it can live. */
  readonly leaseMs: number;
};

/** The right to run the job of a key, once for each claim. */
export type HeldKey = {
  readonly job: JobIdentity;
  /** Somebody who had the key before may have called a tool of a server for the job, and did not end. */
  readonly calledServers: boolean;
  /**
   * To be told before a tool of a server may be called. False when the key was taken over by somebody else meanwhile.
   */
  callServers(): Promise<boolean>;
  /** For a job that ran and is refused: others get the same refusal. */
  refuse(fault: Fault): Promise<void>;
  /** For a job of which nothing ran, nor of whoever had the key before: it may be used anew, for another job too. */
  release(): Promise<void>;
  /** For a runner that gives up: the next one need not wait. */
  giveUp(): Promise<void>;
};

export type ClaimedKey = { readonly held: HeldKey } | { readonly job: JobRecord };

/** Others take and give back the same key at the same moment; each round one of them gets on. */
const MAX_ROUNDS = 10;
const MAX_CLAIM_BYTES = 1_000_000;

/**
 * The job of this key when there is one, else the right to run it. `IDEMPOTENCY_MISMATCH` for another request than the
 * first, `IDEMPOTENCY_IN_PROGRESS` while the first runs, or the refusal that the first got.
 */
export async function claimKey(
  { owner, key, request }: { readonly owner: string; readonly key: string; readonly request: JobRequest },
  context: ClaimContext,
): Promise<Outcome<ClaimedKey>> {
  const wanted = { owner, digest: digestOfJson(request), objectKey: claimKeyOf(owner, key) };
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const claimed = await tryClaim(wanted, context);
    if (claimed !== undefined) return claimed;
  }
  return refuse("IDEMPOTENCY_IN_PROGRESS", "other requests with this Idempotency-Key are under way; try again");
}

type Wanted = { readonly owner: string; readonly digest: string; readonly objectKey: string };

function claimKeyOf(owner: string, key: string): string {
  return `${IDEMPOTENCY_PREFIX}${owner}/${sha256Hex(key)}.json`;
}

/** Undefined when another request got in between. */
async function tryClaim(wanted: Wanted, context: ClaimContext): Promise<Outcome<ClaimedKey> | undefined> {
  const { store, clock, leaseMs } = context;
  const fresh = toFreshClaim(wanted, context);
  const put = await putClaim(store, wanted.objectKey, fresh, { type: "absent" });
  if (put.stored) return succeed({ held: toHeldKey(wanted, { claim: fresh, etag: put.etag }, context) });
  const found = await getClaim(store, wanted.objectKey);
  if (found === undefined) return undefined;
  const { claim, etag } = found;
  if (claim.state === "released") return takeOver(wanted, { claim: fresh, etag }, context);
  if (claim.request_digest !== wanted.digest) {
    const message = "this Idempotency-Key was used for another job; use a new key for each job";
    return refuse("IDEMPOTENCY_MISMATCH", message);
  }
  if (claim.state === "refused") return { ok: false, fault: toFault(claim.error) };
  const job = await getJob(store, wanted.owner, claim.job_id);
  if (job !== undefined) return succeed({ job: asOfNow(job.record, clock()) });
  if (Date.parse(claim.lease_until) > clock()) {
    const message = "the job of this Idempotency-Key is still running; send the same request again in a few seconds";
    return refuse("IDEMPOTENCY_IN_PROGRESS", message);
  }
  const renewed = { ...claim, lease_until: toIso(clock() + leaseMs) };
  return takeOver(wanted, { claim: renewed, etag }, context);
}

function toFault({ code, message }: Extract<Claim, { state: "refused" }>["error"]): Fault {
  return new Fault(isFaultCode(code) ? code : "DEFECT", message);
}

function toFreshClaim({ digest }: Wanted, { clock, randomBytes, leaseMs }: ClaimContext): HeldClaim {
  const now = clock();
  return {
    state: "held",
    request_digest: digest,
    job_id: createJobId(now, randomBytes),
    created_at: toIso(now),
    lease_until: toIso(now + leaseMs),
    called_servers: false,
  };
}

type Holding = { readonly claim: HeldClaim; readonly etag: string };

async function takeOver(
  wanted: Wanted,
  holding: Holding,
  context: ClaimContext,
): Promise<Outcome<ClaimedKey> | undefined> {
  const { claim, etag } = holding;
  const put = await putClaim(context.store, wanted.objectKey, claim, { type: "match", etag });
  return put.stored ? succeed({ held: toHeldKey(wanted, { ...holding, etag: put.etag }, context) }) : undefined;
}

/** A claim that was taken over meanwhile is somebody else's, and stays as it is. */
function toHeldKey({ owner, digest, objectKey }: Wanted, holding: Holding, { store, clock }: ClaimContext): HeldKey {
  let { claim, etag } = holding;
  const calledServers = claim.called_servers;
  const change = async (next: Claim): Promise<boolean> => {
    const put = await putClaim(store, objectKey, next, { type: "match", etag });
    if (put.stored) etag = put.etag;
    return put.stored;
  };
  const giveUp = async () => void (await change({ ...claim, lease_until: toIso(clock()) }));
  return {
    job: { owner, jobId: claim.job_id, createdAt: Date.parse(claim.created_at) },
    calledServers,
    callServers: () => {
      claim = { ...claim, called_servers: true };
      return change(claim);
    },
    refuse: async ({ code, message }) =>
      void (await change({ state: "refused", request_digest: digest, error: { code, message } })),
    release: async () => (calledServers ? giveUp() : void (await change({ state: "released" }))),
    giveUp,
  };
}

function toIso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

function putClaim(store: ObjectStore, key: string, claim: Claim, condition: PutCondition): Promise<PutResult> {
  return store.put({ key, bytes: toBytes(claim), mediaType: JSON_TYPE, condition });
}

async function getClaim(
  store: ObjectStore,
  key: string,
): Promise<{ readonly claim: Claim; readonly etag: string } | undefined> {
  const object = await store.get(key, { maxBytes: MAX_CLAIM_BYTES });
  if (object === undefined) return undefined;
  return { claim: parseStored(Claim, object.bytes, "idempotency claim"), etag: object.etag };
}
