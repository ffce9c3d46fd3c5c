import { spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, dirname, join } from "node:path";
import { ROOT } from "../../cdk/kit/run-app.ts";
import { REGION } from "./names.ts";

/** The CDK's own command line against moto, and moto's answers to the describe calls of AWS. */

const CDK = join(ROOT, "node_modules/aws-cdk/bin/cdk");
const APP = join(import.meta.dirname, "moto-app.mjs");

export type Cdk = {
  /** Synthesises the stack with these props into a directory, for the commands to work on. */
  synth(service: unknown, output: string): Promise<void>;
  /** Rejects with what was said when the command fails. */
  run(...words: readonly string[]): Promise<string>;
};

/** `home` is where the command line keeps what it keeps. */
export function cdkAgainst(url: string, home: string): Cdk {
  const env = {
    PATH: [dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter),
    HOME: home,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: REGION,
    AWS_ENDPOINT_URL: url,
    // moto reads the template by this address, which must not be a bare IP: it takes the bucket out of the host.
    AWS_ENDPOINT_URL_S3_FOR_CLOUDFORMATION: url.replace("127.0.0.1", "localhost"),
    CDK_DISABLE_VERSION_CHECK: "1",
    CDK_VALIDATION: "false",
  };
  return {
    synth: async (service, output) => {
      const props = { SKILLBROKER_TEST_SERVICE: JSON.stringify(service), CDK_OUTDIR: output };
      await run([APP], { ...env, ...props });
    },
    run: (...words) => run([CDK, ...words], env),
  };
}

async function run(words: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, words, { cwd: ROOT, env: { ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => said.push(chunk));
  const [code] = await once(child, "close");
  const text = Buffer.concat(said).toString("utf8");
  if (code !== 0) throw new Error(`${words.slice(1).join(" ")} ended with ${code}:\n${text}`);
  return text;
}

export type MotoAws = {
  /** Status of the stack, as CloudFormation describes it; undefined when there is none. */
  stackStatus(name: string): Promise<string | undefined>;
  functions(): Promise<readonly LambdaConfiguration[]>;
  mappings(): Promise<readonly { readonly EventSourceArn: string; readonly BatchSize: number }[]>;
};

export type LambdaConfiguration = {
  readonly FunctionName: string;
  readonly Runtime: string;
  readonly Timeout: number;
  readonly CodeSha256: string;
  readonly Environment: { readonly Variables: Readonly<Record<string, string>> };
};

export function describeMoto(url: string): MotoAws {
  return {
    stackStatus: async (name) => {
      const query = new URLSearchParams({ Action: "DescribeStacks", Version: "2010-05-15", StackName: name });
      const answer = await fetch(url, { method: "POST", body: query, headers: signedFor("cloudformation") });
      const [, status] = /<StackStatus>(\w+)<\/StackStatus>/.exec(await answer.text()) ?? [];
      return answer.ok ? status : undefined;
    },
    functions: async () => (await getLambda(url, "/2015-03-31/functions/")).Functions,
    mappings: async () => (await getLambda(url, "/2015-03-31/event-source-mappings/")).EventSourceMappings,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the shapes are those of AWS, told by the types above
async function getLambda(url: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { headers: signedFor("lambda") });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

/** moto checks no signature; it takes service and region out of the header. */
function signedFor(service: string): Record<string, string> {
  const scope = `test/20261130/${REGION}/${service}/aws4_request`;
  return { authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=none` };
}
