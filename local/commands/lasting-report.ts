import type { JobReport } from "../../functions/contract/job.ts";
import type { CommandContext } from "./command.ts";

/**
 * The report as it can be printed: without an endpoint the service ends with the command, and its links with it, so
 * they are left out.
 */
export function lastingReport(report: JobReport, context: CommandContext): JobReport {
  if (context.option("endpoint") !== undefined) return report;
  const artifacts = report.artifacts.map(({ url: _, expires_at: _expires, ...artifact }) => artifact);
  return { ...report, artifacts };
}
