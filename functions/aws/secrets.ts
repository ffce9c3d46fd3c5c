import { type Outcome, refuse, succeed } from "../contract/fault.ts";
import { nameOfSecret, type SecretReference } from "../contract/mcp-server.ts";
import type { Clock, ReadSecret } from "../contract/ports.ts";

/**
 * Secrets that `mcp.json` names, from AWS. Their values are kept in memory for a while and written nowhere: neither
 * into a message nor into a cause, because what the SDK says of an answer that it cannot read quotes the answer.
 */

/** The text that is stored under a name; undefined when what is there is no text. Rejects with the SDK's error. */
export type ReadStoredText = (name: string) => Promise<string | undefined>;

export type AwsSecretReaderOptions = {
  readonly clock: Clock;
  /** How long a value is used without asking again, by all who do not want it fresh. 5 minutes. */
  readonly keepMs?: number;
  /** For another endpoint. */
  readonly client?: { readonly endpoint?: string; readonly region?: string; readonly credentials?: Credentials };
};
type Credentials = { readonly accessKeyId: string; readonly secretAccessKey: string };

const KEEP_MS = 5 * 60_000;

type Kept = { readonly until: number; readonly outcome: Promise<Outcome<string>> };

/** Failures are not kept: the next one who asks may have more luck. */
export function createAwsSecretReader({ clock, keepMs = KEEP_MS, client = {} }: AwsSecretReaderOptions): ReadSecret {
  const stores = createStores(client);
  const kept = new Map<string, Kept>();
  return async (reference, { fresh = false } = {}) => {
    const key = nameOfSecret(reference);
    const found = kept.get(key);
    if (!fresh && found !== undefined && clock() < found.until) return found.outcome;
    const asked = { until: clock() + keepMs, outcome: read(reference, stores) };
    kept.set(key, asked);
    const outcome = await asked.outcome;
    if (!outcome.ok && kept.get(key) === asked) kept.delete(key);
    return outcome;
  };
}

type Store = {
  readonly title: string;
  /** Which permission the function needs to read there. */
  readonly action: string;
  readonly open: () => Promise<ReadStoredText>;
};
type Stores = Readonly<Record<Exclude<SecretReference["store"], "env">, Store>>;

/** Each SDK is loaded by the first reference that needs it, and its client then serves all others. */
function createStores(client: NonNullable<AwsSecretReaderOptions["client"]>): Stores {
  return {
    secretsmanager: {
      title: "AWS Secrets Manager",
      action: "secretsmanager:GetSecretValue",
      open: once(async () => (await import("./secrets-manager.ts")).createSecretsManagerReader(client)),
    },
    ssm: {
      title: "the AWS Systems Manager Parameter Store",
      action: "ssm:GetParameter",
      open: once(async () => (await import("./parameter-store.ts")).createParameterStoreReader(client)),
    },
  };
}

function once<T>(act: () => T): () => T {
  let done: { readonly value: T } | undefined;
  return () => {
    done ??= { value: act() };
    return done.value;
  };
}

async function read(reference: SecretReference, stores: Stores): Promise<Outcome<string>> {
  if (reference.store === "env") return refuseVariable(reference);
  const store = stores[reference.store];
  try {
    const readText = await store.open();
    const text = await readText(reference.name);
    if (text !== undefined && text !== "") return succeed(text);
    return unavailable(reference, `${store.title} holds no text under this name`);
  } catch (error) {
    return unavailable(reference, explain(error, store));
  }
}

/** What a name of an error looks like; that of an answer nobody expected might hold anything. */
const ERROR_NAME = /^[A-Z][A-Za-z]{1,60}(?:Error|Exception)$/;

/** What can be done, by the error's name alone. */
function explain(error: unknown, { title, action }: Store): string {
  const name = error instanceof Error ? error.name : "";
  switch (name) {
    case "ResourceNotFoundException":
    case "ParameterNotFound":
    case "ParameterVersionNotFound":
      return `${title} has nothing under this name in this account and region`;
    case "AccessDeniedException":
      return `${title} does not allow the function to read it; it needs ${action}`;
    case "DecryptionFailure":
    case "InvalidKeyId":
      return `${title} cannot decrypt it; the function needs kms:Decrypt on its key`;
    case "TimeoutError":
      return `${title} did not answer in time`;
    default:
      return `${title} could not be asked${ERROR_NAME.test(name) ? ` (${name})` : ""}`;
  }
}

function refuseVariable(reference: SecretReference): Outcome<never> {
  const { name } = reference;
  const [secret, parameter] = [
    nameOfSecret({ store: "secretsmanager", name }),
    nameOfSecret({ store: "ssm", name: `/${name}` }),
  ];
  const advice = `put the value into AWS and name it by ${secret} or ${parameter}`;
  return unavailable(reference, `a deployed function has no such variable; ${advice}`);
}

function unavailable(reference: SecretReference, problem: string): Outcome<never> {
  return refuse("SERVER_UNAVAILABLE", `the secret ${nameOfSecret(reference)} cannot be had: ${problem}`);
}
