import { LIST_CHANGED, NotificationReceipt } from "../../functions/contract/notification.ts";
import { type Command, printJson } from "./command.ts";
import { expectBody } from "./expect-ok.ts";

/** Says in place of a server that its list of tools changed. */
export const notify: Command = {
  name: "notify",
  usage: "<server>",
  summary: "say that an MCP server's tools changed, so that its list is fetched",
  details:
    "The list is fetched once the server has been quiet for debounceSeconds. Without --endpoint the notification waits " +
    "in .skillbroker/ for skillbroker serve. Example: skillbroker notify github",
  options: {},
  words: [1, 1],
  run: async (context) => {
    const [server] = context.words;
    const client = await context.connect();
    const answer = await context.during("queueing", () =>
      client.send("POST", "/v1/notifications", { server, method: LIST_CHANGED }),
    );
    const receipt = expectBody(answer, NotificationReceipt);
    if (context.json) printJson(context, receipt);
    else
      context.print(
        `queued: the tools of ${receipt.server} changed; skillbroker refresh --last shows what came of it\n`,
      );
    return 0;
  },
};
