// Does in a process what Lambda's own runtime for Node does: imports the handler once, then takes one invocation after
// another from the Runtime API. It lies outside the deployed directory, as Lambda's lies outside /var/task.
import { existsSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { env } = process;
const at = env._HANDLER.lastIndexOf(".");
const [file, name] = [env._HANDLER.slice(0, at), env._HANDLER.slice(at + 1)];

function call(method, path, body, headers = {}) {
  return new Promise((done, fail) => {
    const url = `http://${env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/${path}`;
    const sent = request(url, { method, headers }, async (answer) => {
      const chunks = [];
      for await (const chunk of answer) chunks.push(chunk);
      done({ headers: answer.headers, text: Buffer.concat(chunks).toString("utf8") });
    });
    sent.once("error", fail).end(body);
  });
}

function report(path, error, type) {
  const told = { errorType: error?.name ?? "Error", errorMessage: error?.message ?? String(error) };
  const stackTrace = String(error?.stack ?? "").split("\n");
  return call("POST", path, JSON.stringify({ ...told, stackTrace }), { "lambda-runtime-function-error-type": type });
}

async function load() {
  const path = [".js", ".mjs", ".cjs"].map((end) => join(env.LAMBDA_TASK_ROOT, file + end)).find(existsSync);
  if (path === undefined) throw new Error(`Cannot find module '${file}'`);
  const handler = (await import(pathToFileURL(path)))[name];
  if (typeof handler !== "function") throw new Error(`${env._HANDLER} is undefined or not exported`);
  return handler;
}

const handler = await load().catch(async (error) => {
  await report("init/error", error, "Runtime.Unknown");
  process.exit(1);
});

for (;;) {
  const { headers, text } = await call("GET", "invocation/next");
  const id = headers["lambda-runtime-aws-request-id"];
  env._X_AMZN_TRACE_ID = headers["lambda-runtime-trace-id"];
  const context = {
    awsRequestId: id,
    callbackWaitsForEmptyEventLoop: true,
    functionName: env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: env.AWS_LAMBDA_FUNCTION_VERSION,
    invokedFunctionArn: headers["lambda-runtime-invoked-function-arn"],
    logGroupName: env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: env.AWS_LAMBDA_LOG_STREAM_NAME,
    memoryLimitInMB: env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    getRemainingTimeInMillis: () => Number(headers["lambda-runtime-deadline-ms"]) - Date.now(),
  };
  try {
    const answer = await handler(JSON.parse(text), context);
    await call("POST", `invocation/${id}/response`, JSON.stringify(answer ?? null));
  } catch (error) {
    await report(`invocation/${id}/error`, error, "Runtime.Unhandled");
  }
}
