import { Annotations, Duration, RemovalPolicy } from "aws-cdk-lib";
import { AccessLogFormat } from "aws-cdk-lib/aws-apigateway";
import {
  HttpApi,
  HttpMethod,
  HttpNoneAuthorizer,
  HttpStage,
  LogGroupLogDestination,
} from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { ROUTES } from "../../functions/contract/api.ts";
import type { AuthMode } from "../../functions/contract/settings.ts";
import { INTEGRATION_SECONDS } from "../timeouts.ts";

export type JobApiProps = { readonly handler: IFunction; readonly auth: AuthMode };

/**
 * The routes of the contract at API Gateway, and `$default` beside them, so that an unknown path is answered by our
 * problem document. The authorizer is the API's default: a route that is added later cannot be left open.
 */
export class JobApi extends Construct {
  readonly url: string;

  constructor(scope: Construct, id: string, { handler, auth }: JobApiProps) {
    super(scope, id);
    const integration = new HttpLambdaIntegration("Integration", handler, {
      timeout: Duration.seconds(INTEGRATION_SECONDS),
    });
    const api = new HttpApi(this, "Api", {
      apiName: "skillbroker",
      createDefaultStage: false,
      defaultAuthorizer: auth === "iam" ? new HttpIamAuthorizer() : new HttpNoneAuthorizer(),
      defaultIntegration: integration,
    });
    for (const { method, path } of ROUTES) api.addRoutes({ path, methods: [HttpMethod[method]], integration });
    this.url = addStage(this, api).url;
    if (auth === "none") warnOpen(this);
  }
}

function addStage(scope: Construct, httpApi: HttpApi): HttpStage {
  const logGroup = new LogGroup(scope, "AccessLog", {
    retention: RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const destination = new LogGroupLogDestination(logGroup);
  return new HttpStage(scope, "Stage", {
    httpApi,
    autoDeploy: true,
    accessLogSettings: { destination, format: AccessLogFormat.custom(JSON.stringify(ACCESS_LOG)) },
  });
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
