import { once } from "node:events";
import { connect } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { makeCertificate } from "./certificate.ts";

/** HTTPS in front of a server that speaks HTTP: a deployed function calls MCP servers by no other way. */

export type TlsDoor = {
  /** The address by which a function reaches the server, path included. */
  readonly url: string;
  /** PEM, for those who are to trust it. */
  readonly cert: string;
  close(): Promise<void>;
};

export async function openTlsDoor(target: string, hostName: string): Promise<TlsDoor> {
  const { port, pathname } = new URL(target);
  const certificate = makeCertificate(hostName);
  const open = new Set<TLSSocket>();
  const server = createServer({ ...certificate, ALPNProtocols: ["http/1.1"] }, (outer) => {
    const inner = connect(Number(port), "127.0.0.1");
    open.add(outer.once("close", () => open.delete(outer)));
    outer.on("error", () => inner.destroy()).on("close", () => inner.destroy());
    inner.on("error", () => outer.destroy()).on("close", () => outer.destroy());
    outer.pipe(inner).pipe(outer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    url: `https://${hostName}:${typeof address === "object" ? address?.port : ""}${pathname}`,
    cert: certificate.cert,
    close: async () => {
      for (const socket of open) socket.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}
