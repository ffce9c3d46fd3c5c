import { Annotations, Duration } from "aws-cdk-lib";
import { AccessLogFormat } from "aws-cdk-lib/aws-apigateway";
import {
  HttpApi,
  HttpMethod,
  HttpNoneAuthorizer,
  HttpStage,
  type IHttpRouteAuthorizer,
  LogGroupLogDestination,
} from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer, HttpJwtAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { ROUTES } from "../../functions/contract/api.ts";
import { type OperatorSettings, ROUTE_GROUPS, type RouteGroup } from "../../functions/contract/settings.ts";
import { INTEGRATION_SECONDS } from "../timeouts.ts";
import { addLogGroup } from "./log-group.ts";

export type JobApiProps = {
  readonly handler: IFunction;
  readonly settings: Pick<OperatorSettings, "auth" | "logDays">;
  /** Undefined: the service's own key. */
  readonly encryptionKey: IKey | undefined;
};

/** The name of the stage, which is in the ARN of what is called. */
const STAGE = "$default";

/**
 * The routes of the contract at API Gateway, and `$default` beside them, so that an unknown path is answered by our
 * problem document. The authorizer is the API's default: a route that is added later cannot be left open.
 */
export class JobApi extends Construct {
  readonly api: HttpApi;
  /** Ends in a slash. */
  readonly url: string;

  constructor(scope: Construct, id: string, { handler, settings, encryptionKey }: JobApiProps) {
    super(scope, id);
    const { auth, logDays } = settings;
    const integration = new HttpLambdaIntegration("Integration", handler, {
      timeout: Duration.seconds(INTEGRATION_SECONDS),
    });
    const anyScope = scopesOf(auth, ROUTE_GROUPS);
    this.api = new HttpApi(this, "Api", {
      apiName: "skillbroker",
      createDefaultStage: false,
      defaultAuthorizer: toAuthorizer(auth),
      defaultIntegration: integration,
      ...(anyScope === undefined ? {} : { defaultAuthorizationScopes: anyScope }),
    });
    for (const { method, path, group } of ROUTES) {
      const authorizationScopes = scopesOf(auth, [group]);
      const scoped = authorizationScopes === undefined ? {} : { authorizationScopes };
      this.api.addRoutes({ path, methods: [HttpMethod[method]], integration, ...scoped });
    }
    const logGroup = addLogGroup(this, "AccessLog", { days: logDays, encryptionKey });
    this.url = new HttpStage(this, "Stage", {
      httpApi: this.api,
      stageName: STAGE,
      autoDeploy: true,
      accessLogSettings: {
        destination: new LogGroupLogDestination(logGroup),
        format: AccessLogFormat.custom(JSON.stringify(ACCESS_LOG)),
      },
    }).url;
    if (auth === "none") warnOpen(this);
  }

  /** What a policy names to allow the routes of these groups and no other. A path parameter is one asterisk. */
  arnsOf(groups: readonly RouteGroup[]): readonly string[] {
    const routes = ROUTES.filter(({ group }) => groups.includes(group));
    return routes.map(({ method, path }) => this.api.arnForExecuteApi(method, path.replace(/\{[^}]*\}/g, "*"), STAGE));
  }
}

type Auth = OperatorSettings["auth"];

function toAuthorizer(auth: Auth): IHttpRouteAuthorizer {
  if (auth === "none") return new HttpNoneAuthorizer();
  if (auth === "iam") return new HttpIamAuthorizer();
  return new HttpJwtAuthorizer("Jwt", auth.issuer, { jwtAudience: [...auth.audience] });
}

/** A token needs one of them. Only tokens have scopes: API Gateway refuses a route that asks anybody else for one. */
function scopesOf(auth: Auth, groups: readonly RouteGroup[]): string[] | undefined {
  if (auth === "none" || auth === "iam") return undefined;
  return [...new Set(groups.map((group) => auth.scopes[group]))];
}

/** The request id is that of the function's own lines. Neither addresses nor names of callers are kept. */
const ACCESS_LOG = {
  request_id: "$context.requestId",
  time: "$context.requestTime",
  method: "$context.httpMethod",
  route: "$context.routeKey",
  status: "$context.status",
  response_bytes: "$context.responseLength",
  latency_ms: "$context.responseLatency",
  integration_error: "$context.integrationErrorMessage",
  authorizer_error: "$context.authorizer.error",
} as const;

function warnOpen(scope: Construct): void {
  Annotations.of(scope).addWarningV2(
    "skillbroker:open-api",
    'auth is "none": whoever knows the URL can run jobs and read every report; use "iam" for anything but a trial',
  );
}
