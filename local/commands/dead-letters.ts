import { join } from "node:path";
import { toVisible } from "../../functions/contract/printable.ts";
import type { DeadLetter } from "../embedded-event-queue.ts";
import { openLocalQueues } from "../queues.ts";
import { type Command, printJson, UsageError } from "./command.ts";

/** Shows the messages that failed too often, and puts them back. */
export const deadLetters: Command = {
  name: "dead-letters",
  usage: "",
  summary: "show the queued messages that failed too often, or put them back",
  details:
    "For this machine's queues. In the cloud they are in the dead-letter queues, where SQS shows them and moves them back " +
    "(aws sqs start-message-move-task).",
  options: { redrive: { type: "boolean", help: "put all of them back into their queues" } },
  words: [0, 0],
  run: async (context) => {
    if (context.option("endpoint") !== undefined) {
      throw new UsageError(
        "dead-letters looks into this machine's queues; use the AWS console or command line elsewhere",
      );
    }
    const { root, settings } = context.project();
    const log = () => undefined;
    const queues = openLocalQueues({ directory: join(root, ".skillbroker"), settings, clock: () => Date.now(), log });
    try {
      const named = [
        { name: "notifications", queue: queues.notifications },
        { name: "refreshes", queue: queues.refreshes },
        { name: "jobs", queue: queues.jobs },
      ];
      const letters = named.flatMap(({ name, queue }) =>
        queue.deadLetters().map((letter) => ({ queue: name, ...letter })),
      );
      const redriven = context.flag("redrive") ? named.reduce((sum, { queue }) => sum + queue.redrive(), 0) : 0;
      if (context.json) printJson(context, { dead_letters: letters.map(toJson), redriven });
      else context.print(formatLetters(letters, redriven));
    } finally {
      queues.close();
    }
    return 0;
  },
};

type NamedLetter = DeadLetter & { readonly queue: string };

function toJson({ queue, id, body, reason, receiveCount, sentAt, diedAt }: NamedLetter) {
  const at = (time: number) => new Date(time).toISOString();
  return { queue, message_id: id, body, reason, receive_count: receiveCount, sent_at: at(sentAt), died_at: at(diedAt) };
}

function formatLetters(letters: readonly NamedLetter[], redriven: number): string {
  if (letters.length === 0) return "There are no dead letters.\n";
  const lines = letters.map(
    ({ queue, body, reason, diedAt }) =>
      `  ${queue}  ${new Date(diedAt).toISOString()}  ${toVisible(reason)}\n      ${toVisible(body)}`,
  );
  const end = redriven > 0 ? `${redriven} put back` : "--redrive puts them back";
  return `${lines.join("\n")}\n${end}\n`;
}
