// Who may import whom. One direction of flow: contract <- repository, handlers, broker, mcp, aws <- catalog
// <- job, refresh <- wiring <- entry points. Type-only imports count, because a type that crosses a border is what couples two sides.
// test/architecture/imports.test.ts runs these rules and plants a violation of each, to show that it fires.

const AWS_PACKAGES =
  "node_modules/(@aws-sdk|@smithy|@middy|@aws-lambda-powertools|@types/aws-lambda|aws-cdk-lib|constructs)/";
const ENTRY_POINT = "^functions/[^/]+[.]lambda[.]ts$";
const BUILT_IN_MODULES_FOR_FILES = "^(node:)?fs(/promises)?$";

/** A rule that is broken by any import of `to` from `from`. */
function forbid(name, comment, from, to) {
  return { name, severity: "error", comment, from, to };
}

/** A folder of functions that sees only itself and the folders given. */
function sees(folder, folders) {
  const seen = [folder, ...folders].join("|");
  return forbid(
    `${folder}-folders`,
    `functions/${folder} may import ${folders.join(", ") || "no other folder of functions"}. Move what both sides need into contract, or pass it in as an argument from functions/wiring or an entry point.`,
    { path: `^functions/${folder}/` },
    { path: "^functions/", pathNot: `^functions/(${seen})/` },
  );
}

/** The npm packages that a folder of functions may use. */
function uses(folder, packages) {
  return forbid(
    `${folder}-packages`,
    `functions/${folder} may use these packages only: ${packages.join(", ")}. A new one costs cold start and needs a decision record; add it here once that is written.`,
    { path: `^functions/${folder}/` },
    {
      path: "node_modules/",
      pathNot: `node_modules/(${packages.flatMap((name) => [name, `@types/${name}`]).join("|")})/`,
    },
  );
}

const rules = [
  forbid(
    "no-cycle",
    "Two modules that need each other are one module, or the part that both need belongs in a third.",
    {},
    { circular: true },
  ),
  forbid(
    "everything-resolves",
    "The imported file or package is not there. A wrong path is unseen until the module is loaded.",
    // What tests start in a process of its own may stand in another directory then.
    { pathNot: "^test/.*[.]mjs$" },
    { couldNotResolve: true },
  ),
  forbid(
    "packages-are-declared",
    "The package is not in package.json, so its version is whatever another package happens to bring. Declare it, exactly.",
    {},
    { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
  ),
  forbid(
    "functions-use-no-dev-package",
    "What runs in Lambda is in dependencies. Move the package there, or move the code to local, cdk or test.",
    { path: "^functions/" },
    { dependencyTypes: ["npm-dev"], pathNot: "node_modules/@types/" },
  ),

  sees("contract", []),
  forbid(
    "contract-packages",
    "contract holds words: schemas, types, faults, limits, ports. It may use zod, and node:crypto for digests; put what needs more behind a port.",
    { path: "^functions/contract/" },
    { path: "node_modules/", pathNot: "node_modules/zod/" },
  ),
  forbid(
    "contract-does-nothing",
    "contract reads no file, opens no connection and starts no process; node:crypto for digests is the one exception. Take the value as an argument.",
    { path: "^functions/contract/" },
    { dependencyTypes: ["core"], pathNot: "^(node:)?crypto$" },
  ),
  ...["repository", "handlers", "broker", "mcp", "aws"].map((folder) => sees(folder, ["contract"])),
  sees("catalog", ["contract", "repository", "handlers", "broker"]),
  sees("job", ["contract", "catalog", "broker"]),
  sees("refresh", ["contract", "catalog"]),
  sees("wiring", ["contract", "repository", "handlers", "broker", "catalog", "job", "refresh"]),
  forbid(
    "folders-have-a-rule",
    "This folder of functions, or file beside the folders, has no import rule. Add one to .dependency-cruiser.mjs.",
    {
      path: "^functions/",
      pathNot: ["^functions/(contract|repository|handlers|broker|mcp|aws|catalog|job|refresh|wiring)/", ENTRY_POINT],
    },
    {},
  ),
  uses("repository", ["zod", "yaml"]),
  uses("handlers", ["zod", "mustache", "csv-stringify", "ical-generator"]),
  uses("broker", ["zod", "ajv", "re2js"]),
  uses("mcp", ["zod", "@modelcontextprotocol"]),
  uses("aws", ["zod", "@aws-sdk", "@smithy", "@middy", "aws-lambda"]),
  ...["catalog", "job", "refresh", "wiring"].map((folder) => uses(folder, ["zod"])),
  forbid(
    "handlers-are-pure",
    "A handler is a function of its arguments and its skill: no files, no network, no processes. node:zlib is allowed because it only computes.",
    { path: "^functions/handlers/" },
    { dependencyTypes: ["core"], pathNot: "^(node:)?zlib$" },
  ),
  forbid(
    "only-tree-reads-files",
    "functions/repository/tree.ts reads every skill file once, so that what is used is what was checked; pins-file.ts reads the pins. Work on their bytes.",
    { path: "^functions/", pathNot: "^functions/repository/(tree|pins-file)[.]ts$" },
    { path: BUILT_IN_MODULES_FOR_FILES },
  ),

  forbid(
    "functions-stand-alone",
    "functions run in Lambda, where neither this folder nor its packages exist. Turn the import around.",
    { path: "^functions/" },
    { path: "^(local|cdk|bench|scripts|test)/" },
  ),
  forbid(
    "entry-points-are-not-imported",
    "An entry point wires and exports a handler when it is loaded. Import what it wires instead.",
    { pathNot: "^test/" },
    { path: ENTRY_POINT },
  ),
  forbid(
    "local-sees-functions",
    "local runs the same handlers on one machine and needs nothing of the stack, of the tests or of the benchmarks.",
    { path: "^local/" },
    { path: "^(cdk|bench|scripts|test)/" },
  ),
  forbid(
    "cdk-sees-contract-and-repository",
    "cdk verifies the skills and the settings that it deploys, and describes the rest. Whatever else both sides need belongs in contract.",
    { path: "^cdk/" },
    {
      path: ["^functions/", "^(local|bench|scripts|test)/"],
      pathNot: [
        "^functions/(contract|repository)/",
        "^functions/handlers/table[.]ts$",
        // What an approval may be is said once, and a wrong one fails the synthesis in place of the cold start.
        "^functions/broker/operator-policy[.]ts$",
        // Which refs exist is said once as well: an approval of one that does not is refused.
        "^functions/catalog/bundled-tools[.]ts$",
      ],
    },
  ),
  forbid(
    "aws-stays-at-the-edge",
    "Only functions/aws, the entry points, cdk and, for types, local know AWS. Add a port to functions/contract/ports.ts and implement it in functions/aws.",
    { pathNot: ["^functions/aws/", ENTRY_POINT, "^(cdk|local|test|bench)/", "node_modules/"] },
    { path: AWS_PACKAGES },
  ),
  forbid(
    "local-uses-aws-types-only",
    "local runs without AWS; only the types of events may come from there. Use what functions/aws exports.",
    { path: "^local/" },
    { path: AWS_PACKAGES, dependencyTypesNot: ["type-only"] },
  ),
  forbid(
    "cdk-packages-stay-in-cdk",
    "aws-cdk-lib would make a bundle ten times as large. Only cdk describes infrastructure.",
    { pathNot: ["^(cdk|test)/", "node_modules/"] },
    { path: "node_modules/(aws-cdk-lib|constructs|aws-cdk)/" },
  ),
  forbid(
    "only-mcp-speaks-mcp",
    "Only functions/mcp and local import the MCP SDK, which triples a cold start. Put a port between.",
    { pathNot: ["^functions/mcp/", "^(local|test)/", "node_modules/"] },
    { path: "node_modules/@modelcontextprotocol/" },
  ),
  forbid(
    "nothing-imports-tests",
    "Tests and their kit are not shipped. Move what the product needs into functions.",
    { pathNot: "^test/" },
    { path: "^test/" },
  ),
  forbid(
    "skills-are-data",
    "A skill is read as bytes and checked against its pin; importing one would run it unchecked. Only an entry point imports skills/pins.json, to have the approval compiled in.",
    { pathNot: "^test/" },
    { path: "^skills/", pathNot: "^skills/pins[.]json$" },
  ),
  forbid(
    "pins-are-compiled-in",
    "skills/pins.json is the approval. Entry points have it compiled in and pass it on as an argument.",
    { pathNot: ["^test/", ENTRY_POINT] },
    { path: "^skills/pins[.]json$" },
  ),
];

export default {
  forbidden: rules,
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["node", "import", "types", "default"],
    },
  },
};
