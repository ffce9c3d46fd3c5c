import type { IncomingMessage } from "node:http";
import { type Outcome, refuse, succeed } from "../functions/contract/fault.ts";
import type { Target } from "./http-event.ts";

/**
 * Who may speak to a service on loopback. Any web page can make the user's browser send requests here: a foreign
 * `Host` means that a name was rebound to 127.0.0.1, a foreign `Origin` or `Sec-Fetch-Site` that another site asks.
 */

export const LOOPBACK = "127.0.0.1";

/** Absent for what is no browser; `none` is the address bar. `same-site` is another port of this machine. */
const OWN_SITES: ReadonlySet<string> = new Set(["same-origin", "none"]);

/** The split target when the request was meant for us: `REQUEST_INVALID` or `ACCESS_DENIED` otherwise. */
export function readTarget(request: IncomingMessage, port: number): Outcome<Target> {
  const own = ownHosts(port);
  const hosts = request.headersDistinct.host ?? [];
  const [host = ""] = hosts;
  if (hosts.length !== 1) return refuse("REQUEST_INVALID", `one Host header expected, got ${hosts.length}`);
  const target = splitTarget(request.url ?? "/");
  if (target === undefined) return refuse("REQUEST_INVALID", "the request target is no path");
  const foreign = [host, ...(target.host === undefined ? [] : [target.host])].find(
    (each) => !own.has(each.toLowerCase()),
  );
  if (foreign === undefined) return succeed({ path: target.path, query: target.query });
  const named = JSON.stringify(foreign.slice(0, 100));
  return refuse("ACCESS_DENIED", `this service answers to ${LOOPBACK}:${port} only, not to ${named}`);
}

/** `ACCESS_DENIED` for what a page of another origin sends. */
export function refuseOtherSites({ headers }: IncomingMessage, port: number): Outcome<null> {
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  const originIsOurs = origin === undefined || isOwnOrigin(origin, port);
  const siteIsOurs = site === undefined || (typeof site === "string" && OWN_SITES.has(site));
  return originIsOurs && siteIsOurs
    ? succeed(null)
    : refuse("ACCESS_DENIED", "requests of other web sites are refused");
}

function isOwnOrigin(origin: string, port: number): boolean {
  return origin.startsWith("http://") && ownHosts(port).has(origin.slice("http://".length).toLowerCase());
}

function ownHosts(port: number): ReadonlySet<string> {
  const names = [LOOPBACK, "localhost", "[::1]"];
  const hosts = names.map((name) => `${name}:${port}`);
  // A client leaves the port out when it is the one that http implies.
  return new Set(port === 80 ? [...hosts, ...names] : hosts);
}

/** Path form, or absolute form, which a server must accept (RFC 9112, 3.2.2) and whose host then counts as well. */
function splitTarget(target: string): (Target & { readonly host?: string }) | undefined {
  if (target.startsWith("/")) return splitQuery(target);
  const absolute = /^http:\/\/([^/?#]+)(\/.*)?$/i.exec(target);
  const [, host] = absolute ?? [];
  return host === undefined ? undefined : { ...splitQuery(absolute?.[2] ?? "/"), host };
}

/** Not through `URL`, which would resolve `..` and turn `\` around: the handler is to see what was sent. */
function splitQuery(target: string): Target {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at + 1) };
}
