import { type Made, type Resources, resourcesOf } from "./template.ts";

/** What the resources of a stack are called, and what each is known by to the others. */

export const ACCOUNT = "000000000000";
export const REGION = "eu-central-1" as const;

/** Everything but the queues, whose maker says what they are called. */
export function nameResources(resources: Resources): ReadonlyMap<string, Made> {
  const buckets = resourcesOf(resources, "AWS::S3::Bucket").map(([id]) => [id, toMadeBucket(bucketName(id))] as const);
  return new Map([...PSEUDO, ...nameOthers(resources), ...buckets]);
}

/**
 * Name of the one bucket that functions work on. Throws when there is another one, but for those that logs are written
 * to: AWS itself does that, and nobody here.
 */
export function storeName(resources: Resources): string {
  const buckets = resourcesOf(resources, "AWS::S3::Bucket");
  const logged = JSON.stringify(buckets.map(([, { LoggingConfiguration }]) => LoggingConfiguration ?? null));
  const [store, ...others] = buckets.filter(([id]) => !logged.includes(`"${id}"`));
  if (store === undefined || others.length > 0) throw new Error("one bucket expected, beside those for logs");
  return bucketName(store[0]);
}

/** The parameters that every template has. */
const PSEUDO: readonly (readonly [string, Made])[] = [
  ["AWS::Region", REGION],
  ["AWS::AccountId", ACCOUNT],
  ["AWS::Partition", "aws"],
  ["AWS::URLSuffix", "amazonaws.com"],
  ["AWS::StackName", "SkillBroker"],
].map(([name = "", ref = ""]) => [name, { ref, attributes: {} }]);

const ARNS: ReadonlyMap<string, (name: string) => string> = new Map([
  ["AWS::Lambda::Function", (name) => `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`],
  ["AWS::IAM::Role", (name) => `arn:aws:iam::${ACCOUNT}:role/${name}`],
  ["AWS::Events::Rule", (name) => `arn:aws:events:${REGION}:${ACCOUNT}:rule/${name}`],
  ["AWS::Logs::LogGroup", (name) => `arn:aws:logs:${REGION}:${ACCOUNT}:log-group:${name}:*`],
]);

function nameOthers(resources: Resources): readonly (readonly [string, Made])[] {
  return [...resources]
    .filter(([, { Type }]) => Type !== "AWS::SQS::Queue" && Type !== "AWS::S3::Bucket")
    .map(([id, { Type }]) => {
      const name = Type.startsWith("AWS::ApiGatewayV2::") ? id.slice(-8).toLowerCase() : `SkillBroker-${id}`;
      const arn = ARNS.get(Type)?.(name);
      return [id, { ref: name, attributes: arn === undefined ? {} : { Arn: arn } }] as const;
    });
}

const bucketName = (id: string) => `skillbroker-${id.toLowerCase()}`;

function toMadeBucket(name: string): Made {
  return { ref: name, attributes: { Arn: `arn:aws:s3:::${name}` } };
}
