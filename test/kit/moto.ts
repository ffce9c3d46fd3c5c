import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

/** moto's server, when the machine has it: an independent check of what it gets right. */

export type Moto = { readonly python: string };

/** Undefined when this machine's python has no `moto[server]`. */
export function findMoto(): Moto | undefined {
  const python = process.env.SKILLBROKER_TEST_PYTHON ?? "python3";
  const { status } = spawnSync(python, ["-c", "import moto.server, flask"], { stdio: "ignore" });
  return status === 0 ? { python } : undefined;
}

const SERVE = `
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
`;

/** Resolves once moto accepts connections. */
export async function startMoto({ python }: Moto): Promise<{ readonly url: string; close(): Promise<void> }> {
  const child = spawn(python, ["-c", SERVE], { stdio: ["ignore", "pipe", "ignore"] });
  const [port] = await once(child.stdout, "data");
  return {
    url: `http://127.0.0.1:${String(port).trim()}`,
    close: async () => {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}
