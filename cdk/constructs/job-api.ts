import { Annotations, Duration, Stack } from "aws-cdk-lib";
import { AccessLogFormat } from "aws-cdk-lib/aws-apigateway";
import {
  HttpApi,
  HttpIntegrationType,
  HttpMethod,
  HttpNoneAuthorizer,
  HttpRouteIntegration,
  type HttpRouteIntegrationConfig,
  HttpStage,
  type IHttpRouteAuthorizer,
  LogGroupLogDestination,
  PayloadFormatVersion,
  type ThrottleSettings,
} from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer, HttpJwtAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { ROUTES } from "../../functions/contract/api.ts";
import { ROUTE_GROUPS, type RouteGroup } from "../../functions/contract/auth.ts";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import { INTEGRATION_SECONDS } from "../timeouts.ts";
import { addLogGroup } from "./log-group.ts";
import { API_FAILED, countInLog } from "./metrics.ts";

export type JobApiProps = {
  /** Of the API, where there may be several in an account. */
  readonly name: string;
  /** Of the metric that is counted from the access log. */
  readonly namespace: string;
  readonly handler: IFunction;
  readonly settings: Pick<OperatorSettings, "auth" | "logDays">;
  /** Undefined: the service's own key. */
  readonly encryptionKey: IKey | undefined;
};

/** The name of the stage, which is in the ARN of what is called. */
const STAGE = "$default";

/**
 * Where anybody may call, in requests a second: enough for a trial and its console, and a bound to what strangers can
 * make it cost. What is more is answered with 429 by API Gateway, which aims at these numbers and does not promise
 * them.
 */
const OPEN_THROTTLE: ThrottleSettings = { rateLimit: 20, burstLimit: 40 };

/**
 * The routes of the contract at API Gateway, and `$default` beside them, so that an unknown path is answered by our
 * problem document. The authorizer is the API's default: a route that is added later cannot be left open.
 */
export class JobApi extends Construct {
  readonly api: HttpApi;
  /** The one stage; it has no path of its own. */
  readonly stage: HttpStage;

  constructor(scope: Construct, id: string, props: JobApiProps) {
    super(scope, id);
    const { name, handler, settings } = props;
    const { auth } = settings;
    const integration = new FunctionIntegration(handler);
    const anyScope = scopesOf(auth, ROUTE_GROUPS);
    this.api = new HttpApi(this, "Api", {
      apiName: name,
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
    letCall(this.api, handler);
    this.stage = addStage(this, this.api, props);
    if (auth === "none") warnOpen(this);
  }

  /** What a policy names to allow the routes of these groups and no other. A path parameter is one asterisk. */
  arnsOf(groups: readonly RouteGroup[]): readonly string[] {
    const routes = ROUTES.filter(({ group }) => groups.includes(group));
    return routes.map(({ method, path }) => this.api.arnForExecuteApi(method, path.replace(/\{[^}]*\}/g, "*"), STAGE));
  }
}

/** CDK's own would add a permission for each route to the one that the default route needs and that covers them all. */
class FunctionIntegration extends HttpRouteIntegration {
  readonly #handler: IFunction;

  constructor(handler: IFunction) {
    super("Integration");
    this.#handler = handler;
  }

  bind(): HttpRouteIntegrationConfig {
    return {
      type: HttpIntegrationType.AWS_PROXY,
      uri: this.#handler.functionArn,
      payloadFormatVersion: PayloadFormatVersion.VERSION_2_0,
      timeout: Duration.seconds(INTEGRATION_SECONDS),
    };
  }
}

/** The ARN of the default route ends after the stage and `$default`, that of any other goes on. */
function letCall(api: HttpApi, handler: IFunction): void {
  handler.addPermission("CalledByApi", {
    scope: api,
    principal: new ServicePrincipal("apigateway.amazonaws.com"),
    sourceArn: Stack.of(api).formatArn({ service: "execute-api", resource: api.apiId, resourceName: "*/*" }),
  });
}

function addStage(scope: Construct, httpApi: HttpApi, props: JobApiProps): HttpStage {
  const { settings, encryptionKey, namespace } = props;
  const logGroup = addLogGroup(scope, "AccessLog", { days: settings.logDays, encryptionKey });
  countInLog(scope, logGroup, { metric: API_FAILED, namespace });
  return new HttpStage(scope, "Stage", {
    httpApi,
    stageName: STAGE,
    autoDeploy: true,
    ...(settings.auth === "none" ? { throttle: OPEN_THROTTLE } : {}),
    accessLogSettings: {
      destination: new LogGroupLogDestination(logGroup),
      format: AccessLogFormat.custom(JSON.stringify(ACCESS_LOG)),
    },
  });
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
  function_status: "$context.integration.status",
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
