// Stands beside a copy of the deployed directory and does to it what Lambda does: imports it once, then calls it.
const started = process.cpuUsage();
const { handler } = await import("./asset/index.mjs");
const { user, system } = process.cpuUsage(started);
process.send({ initMs: (user + system) / 1000 });

process.on("message", async ({ id, event }) => {
  try {
    const response = await handler(event, { awsRequestId: id });
    const timers = process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    process.send({ id, response, timers });
  } catch (error) {
    process.send({ id, error: String(error) });
  }
});
