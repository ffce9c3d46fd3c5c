import { BlockList, isIPv4, isIPv6 } from "node:net";

/**
 * Addresses that a deployed function does not reach: its functions are in no network of the operator's own, so that
 * what is private, of one link or of one machine is nothing, or something of AWS's, to them.
 */

/** RFC 6890 and its registry: not globally reachable. */
const CLOSED_V4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const;
const CLOSED_V6 = [
  ["::", 127],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8],
] as const;

const closed = new BlockList();
for (const [network, bits] of CLOSED_V4) closed.addSubnet(network, bits, "ipv4");
for (const [network, bits] of CLOSED_V6) closed.addSubnet(network, bits, "ipv6");

const THIS_MACHINE = /^(?:.+\.)?localhost\.?$/;

/** By the host name of a parsed URL, which has numbers in one form only. Names are not looked up. */
export function isReachable(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  if (isIPv4(address)) return !closed.check(address, "ipv4");
  // An IPv4 address in IPv6 clothes is checked as what it is.
  if (isIPv6(address)) return !closed.check(address, "ipv6");
  return !THIS_MACHINE.test(hostname);
}
