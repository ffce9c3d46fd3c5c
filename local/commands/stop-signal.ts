const A_DAY_MS = 24 * 3600_000;

/**
 * Resolves at Ctrl-C, SIGTERM, or when the terminal is closed, and keeps the process alive until then. A second Ctrl-C
 * finds no listener and ends the process at once.
 */
export function stopSignal(): Promise<void> {
  const alive = setInterval(() => undefined, A_DAY_MS);
  return new Promise((done) => {
    const stop = () => {
      clearInterval(alive);
      done();
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, stop);
  });
}
