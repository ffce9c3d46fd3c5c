import { ROUTE_GROUPS } from "../functions/contract/auth.ts";
import { parseMcpToolName } from "../functions/contract/offered-tool.ts";
import type { OperatorSettings } from "../functions/contract/settings.ts";

/** What is allowed and seldom meant: a deployment goes on, and whoever reads the synth can think again. */

export type Warning = {
  /** By which an app acknowledges it. */
  readonly id: `skillbroker:${string}`;
  /** JSON Pointer to what is meant. */
  readonly path: string;
  readonly message: string;
};

export function findSettingsWarnings({ tools, auth }: OperatorSettings): readonly Warning[] {
  return [...tools.flatMap(findShortApproval), ...(typeof auth === "string" ? [] : findEqualScopes(auth.scopes))];
}

/** Twelve digits can be met on purpose, by who writes the definition of the tool. */
function findShortApproval(approval: string, index: number): readonly Warning[] {
  const lent = parseMcpToolName(approval);
  if (lent?.digits === undefined || lent.digits.length >= WHOLE_DIGEST) return [];
  const message =
    `${approval} binds ${lent.digits.length} of the ${WHOLE_DIGEST} digits of a definition; ` +
    "`npx skillbroker tools --endpoint …` shows the whole approval, to be copied";
  return [{ id: "skillbroker:short-approval", path: `/tools/${index}`, message }];
}

const WHOLE_DIGEST = 64;

function findEqualScopes(scopes: Readonly<Record<string, string>>): readonly Warning[] {
  const groups = Map.groupBy(ROUTE_GROUPS, (group) => scopes[group]);
  return [...groups]
    .filter(([, named]) => named.length > 1)
    .map(([scope, named]) => ({
      id: "skillbroker:equal-scopes",
      path: "/auth/scopes",
      message: `${scope} stands for ${named.join(" and ")}: who may do the one may do the other`,
    }));
}
