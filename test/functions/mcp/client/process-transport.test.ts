import { existsSync, readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProcessTransport } from "../../../../functions/mcp/client/process-transport.ts";
import type { WireTrouble } from "../../../../functions/mcp/client/wire.ts";

const ENV = { PATH: process.env.PATH ?? "" };

/** A program in a process of its own; every line of its output that is a message, and what the wire told. */
async function run(program: string, options: { readonly maxBytes?: number; readonly graceMs?: number } = {}) {
  const messages: unknown[] = [];
  const errors: string[] = [];
  const troubles: WireTrouble[] = [];
  const transport = new ProcessTransport({
    command: process.execPath,
    args: ["-e", program],
    env: ENV,
    cwd: undefined,
    graceMs: () => options.graceMs ?? 5_000,
    watch: {
      maxBytes: () => options.maxBytes ?? 1_000,
      onBytes: () => undefined,
      onTrouble: (trouble) => troubles.push(trouble),
    },
  });
  let closed = 0;
  transport.onmessage = (message) => messages.push(message);
  transport.onerror = (error) => errors.push(error.message);
  transport.onclose = () => {
    closed += 1;
  };
  await transport.start();
  onTestFinished(() => transport.close());
  const { pid } = transport;
  return { transport, messages, errors, troubles, closed: () => closed, pid: pid ?? 0 };
}

/**
 * A process that has ended may still be listed where nobody collects the orphans, as in a container without an init.
 */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = `/proc/${pid}/stat`;
  return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, "utf8"));
}

const PING = { jsonrpc: "2.0", id: 1, method: "ping" } as const;
const NOTE = '{"jsonrpc":"2.0","method":"notifications/x"}';
/** Answers each line with itself, and ends when there are no more. */
const ECHO = "process.stdin.pipe(process.stdout)";
const DEAF = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000);";

describe("messages", () => {
  test("are lines in both directions, wherever the chunks break", async () => {
    const { transport, messages } = await run(
      `process.stdin.on("data", (d) => { const t = String(d); process.stdout.write(t.slice(0, 9), () => process.stdout.write(t.slice(9) + ${JSON.stringify(`${NOTE}\r\n${NOTE}\n`)})); })`,
    );
    await transport.send(PING);
    await expect.poll(() => messages).toEqual([PING, JSON.parse(NOTE), JSON.parse(NOTE)]);
  });

  test("are found among lines that are none", async () => {
    const { messages, errors } = await run(`console.log("hello\\n\\n{}\\n[" ); console.log(${JSON.stringify(NOTE)})`);
    await expect.poll(() => messages).toEqual([JSON.parse(NOTE)]);
    expect(errors).toHaveLength(4);
  });

  test("may have the most bytes of a line, and one byte more ends the process", async () => {
    const line = `${NOTE.slice(0, -1)},"params":{"a":"é"}}`;
    const maxBytes = Buffer.byteLength(line);
    const taken = await run(`console.log(${JSON.stringify(line)}); ${ECHO}`, { maxBytes });
    await expect.poll(() => taken.messages).toHaveLength(1);
    const refused = await run(`console.log(${JSON.stringify(line)}); ${ECHO}`, { maxBytes: maxBytes - 1 });
    await expect.poll(() => refused.closed()).toBe(1);
    expect(refused.messages).toEqual([]);
    expect(refused.troubles).toEqual([
      { tooLarge: true, message: `sent more than ${maxBytes - 1} bytes in one answer` },
    ]);
    expect(isAlive(refused.pid)).toBe(false);
  });

  test("without an end do not eat memory", async () => {
    const endless = await run(
      "const more = () => process.stdout.write('x'.repeat(65536), more); process.stdout.on('error', () => process.exit()); more();",
      { maxBytes: 200_000, graceMs: 100 },
    );
    await expect.poll(() => endless.closed()).toBe(1);
    expect(endless.troubles).toHaveLength(1);
    expect(isAlive(endless.pid)).toBe(false);
  });

  test("cannot be sent to a process that has ended", async () => {
    const { transport, closed, troubles } = await run("process.exit(3)");
    await expect.poll(() => closed()).toBe(1);
    expect(troubles).toEqual([{ tooLarge: false, message: "its process ended (3)" }]);
    await expect(transport.send(PING)).rejects.toThrow("has ended");
  });
});

describe("the process", () => {
  test("has the variables that it is given and no others", async () => {
    const { messages } = await run(
      `console.log(JSON.stringify({jsonrpc:"2.0",method:"env",params:{names:Object.keys(process.env)}}))`,
    );
    await expect.poll(() => messages).toEqual([expect.objectContaining({ params: { names: ["PATH"] } })]);
  });

  test("may say what it likes on standard error, of which the end is kept", async () => {
    const { transport, messages } = await run(
      `process.stderr.write("x".repeat(1e6) + "last", () => console.log(${JSON.stringify(NOTE)}))`,
    );
    await expect.poll(() => messages).toHaveLength(1);
    await expect.poll(() => transport.lastWords).toMatch(/^x{16380}last$/);
  });

  test("that does not exist is told by the code of the system", async () => {
    const transport = new ProcessTransport({
      command: "no-such-command-anywhere",
      args: [],
      env: ENV,
      cwd: undefined,
      graceMs: () => 0,
      watch: { maxBytes: () => 1, onBytes: () => undefined, onTrouble: () => undefined },
    });
    await expect(transport.start()).rejects.toMatchObject({ code: "ENOENT" });
    await transport.close();
  });

  test("ends by itself when its input does, without a signal", async () => {
    const { transport, pid, closed, messages } = await run(
      `${ECHO}; process.on("exit", () => require("fs").writeSync(1, ${JSON.stringify(`${NOTE}\n`)}))`,
    );
    await transport.send(PING);
    await expect.poll(() => messages).toHaveLength(1);
    await transport.close();
    expect(isAlive(pid)).toBe(false);
    expect(closed()).toBe(1);
  });

  test.each([0, 50])(
    "is gone after close although it minds neither input nor signal, with %i ms of grace",
    async (graceMs) => {
      const { transport, pid, messages } = await run(`${DEAF} console.log(${JSON.stringify(NOTE)})`, { graceMs });
      await expect.poll(() => messages).toHaveLength(1);
      await transport.close();
      expect(isAlive(pid)).toBe(false);
    },
  );

  test.skipIf(process.platform === "win32")("takes with it what it has started", async () => {
    const { transport, messages } = await run(
      `const { spawn } = require("child_process");
       const child = spawn(process.execPath, ["-e", ${JSON.stringify(DEAF)}], { stdio: "inherit" });
       console.log(JSON.stringify({ jsonrpc: "2.0", method: "pid", params: { pid: child.pid } }));
       process.stdin.resume();`,
      { graceMs: 50 },
    );
    await expect.poll(() => messages).toHaveLength(1);
    const [message] = messages;
    const grandchild = Number(JSON.stringify(message).match(/"pid":(\d+)/)?.[1]);
    expect(isAlive(grandchild)).toBe(true);
    await transport.close();
    await expect.poll(() => isAlive(grandchild)).toBe(false);
  });

  test.skipIf(process.platform === "win32")("that ends before what it has started takes it along", async () => {
    const { closed, troubles } = await run(
      `const { spawn } = require("child_process");
       spawn(process.execPath, ["-e", ${JSON.stringify(DEAF)}], { stdio: "inherit" }).unref();
       process.exitCode = 7;`,
    );
    await expect.poll(() => closed(), { timeout: 5_000 }).toBe(1);
    expect(troubles).toEqual([{ tooLarge: false, message: "its process ended (7)" }]);
  });

  test("is closed once, however often it is asked to", async () => {
    const { transport, closed } = await run(ECHO);
    await Promise.all([transport.close(), transport.close()]);
    await transport.close();
    expect(closed()).toBe(1);
  });
});
