import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type Cloud, type DeployOptions, deploy } from "./cloud.ts";
import { type Assembly, type ProjectChoices, synthesiseProject } from "./template.ts";

/** What a file of tests deploys: removed, and its processes ended, after the file's last test. */

export type Project = {
  readonly assembly: Assembly;
  /** Each time anew: buckets, queues and functions of its own. */
  deploy(options?: Partial<Omit<DeployOptions, "directory">>): Promise<Cloud>;
};

/** To be called once a file, at its top, and `synthesise` in a hook. */
export function projectMaker(): { synthesise(choices?: ProjectChoices): Project } {
  // Outside the checkout, so that no node_modules is above what is deployed.
  const directory = mkdtempSync(join(tmpdir(), "skillbroker-aws-"));
  const clouds: Cloud[] = [];
  afterAll(async () => {
    await Promise.all(clouds.map((cloud) => cloud.close()));
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    synthesise: (choices = {}) => {
      const assembly = synthesiseProject(join(directory, "project"), choices);
      return {
        assembly,
        deploy: async (options = {}) => {
          const place = mkdtempSync(join(directory, "deployed-"));
          const cloud = await deploy({ assembly, directory: place, ...options });
          clouds.push(cloud);
          return cloud;
        },
      };
    },
  };
}
