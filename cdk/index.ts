/**
 * What other apps import as `skillbroker/cdk`: the one door of the package, and nothing in the product goes through it.
 */

// biome-ignore-start lint/performance/noBarrelFile: a package has one door, and behind it nothing is read that is not used
export type { FunctionName } from "./entry-points.ts";
export { BUILTIN_SKILLS } from "./package-places.ts";
export { SkillBroker } from "./skillbroker.ts";
export type { JwtAuthProps, LimitProps, McpServer, ScopeProps, SkillBrokerProps } from "./skillbroker-props.ts";
export { SkillBrokerStack, type SkillBrokerStackProps } from "./skillbroker-stack.ts";
// biome-ignore-end lint/performance/noBarrelFile: until here
