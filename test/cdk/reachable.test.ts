import { expect, test } from "vitest";
import { isReachable } from "../../cdk/reachable.ts";

const reachable = (host: string) => isReachable(new URL(`https://${host}/`).hostname);

test.each([
  ["this machine", ["localhost", "mcp.localhost", "localhost.", "127.0.0.1", "127.8.8.8", "[::1]", "0x7f000001"]],
  ["no address", ["0.0.0.0", "[::]", "0"]],
  ["this machine, in the clothes of IPv6", ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]"]],
  ["one link, where AWS keeps credentials", ["169.254.169.254", "169.254.170.2", "[fe80::1]"]],
  ["a private network", ["10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "100.64.0.1", "[fd00:ec2::254]"]],
  ["many at once", ["224.0.0.1", "255.255.255.255", "[ff02::1]"]],
])("%s is not reached", (_, hosts) => {
  expect(hosts.filter(reachable)).toEqual([]);
});

test("names and public addresses are, also those beside the private ones", () => {
  const hosts = [
    "mcp.acme.test",
    "localhost.acme.test",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "11.0.0.1",
    "[2001:4860::1]",
  ];
  expect(hosts.filter((host) => !reachable(host))).toEqual([]);
});
