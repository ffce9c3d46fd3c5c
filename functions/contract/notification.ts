import * as z from "zod";
import { ServerName } from "./mcp-server.ts";

/** An MCP notification on its way: at the door, in the queue, and as the delayed message that it becomes. */

/** The one notification that changes a catalog. */
export const LIST_CHANGED = "notifications/tools/list_changed";

/** As `POST /v1/notifications` takes it, and as the notifications queue carries it. */
export const Notification = z
  .strictObject({
    server: ServerName,
    method: z.literal(LIST_CHANGED, `must be "${LIST_CHANGED}", the one notification that is acted upon`),
    params: z.record(z.string(), z.unknown()).optional().meta({ description: "the notification's own; not looked at" }),
    source: z
      .enum(["caller", "schedule", "watch"])
      .optional()
      .meta({ description: "who says so; `caller` when left out" }),
  })
  .meta({ id: "Notification", examples: [{ server: "github", method: LIST_CHANGED }] });
export type Notification = z.infer<typeof Notification>;

export const NotificationReceipt = z
  .object({ queued: z.literal(true), server: z.string() })
  .meta({ id: "NotificationReceipt" });

/** In the refresh queue: every notification of one bucket of one server. `sources` is sorted. */
export const RefreshMessage = z.strictObject({
  server: ServerName,
  /** ⌊time of the notification in the queue / window⌋ */
  bucket: z.int().min(0),
  sources: z.array(z.enum(["caller", "schedule", "watch"])).min(1),
});
export type RefreshMessage = z.infer<typeof RefreshMessage>;
