// Names that end in .test lead to this machine, in a process that imports this first: a deployed function may not be
// told to call the machine that it runs on, and RFC 6761 keeps these names for tests.
import dns from "node:dns";

const { lookup } = dns;
dns.lookup = (host, ...rest) => lookup(host.endsWith(".test") ? "127.0.0.1" : host, ...rest);
