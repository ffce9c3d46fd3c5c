import { connect, type Socket } from "node:net";

/** HTTP byte by byte over a socket, for what no well-behaved client sends. */

export type RawConnection = {
  readonly socket: Socket;
  /** Everything received so far, as Latin-1. */
  received(): string;
  /** Resolves once the received text fits; rejects when the connection ends before. */
  until(wanted: RegExp): Promise<string>;
  /** Resolves with everything once the server has closed. */
  closed(): Promise<string>;
  /** Whether the connection ended by a reset, by which a client may lose what was sent to it. */
  wasReset(): boolean;
};

export async function connectRaw(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const chunks: Buffer[] = [];
  const received = () => Buffer.concat(chunks).toString("latin1");
  socket.on("data", (chunk) => chunks.push(chunk));
  // A reset is one of the ways in which a server closes.
  let reset = false;
  socket.on("error", () => {
    reset = true;
    socket.destroy();
  });
  await new Promise<void>((done) => socket.once("connect", done));
  const ended = new Promise<void>((done) => {
    for (const event of ["end", "close"]) socket.once(event, done);
  });
  return {
    socket,
    received,
    wasReset: () => reset,
    until: (wanted) =>
      new Promise((done, fail) => {
        const look = () => {
          if (wanted.test(received())) done(received());
        };
        socket.on("data", look);
        ended.then(() => fail(new Error(`closed before ${wanted}: ${received()}`)));
        look();
      }),
    closed: async () => {
      await ended;
      socket.destroy();
      return received();
    },
  };
}

/** Sends the text and gives back what came until the server closed. */
export async function exchangeRaw(url: string, text: string): Promise<string> {
  const connection = await connectRaw(url);
  connection.socket.write(text, "latin1");
  return connection.closed();
}
