import { defineConfig } from "vitest/config";

/** The deployed bundles, run here as Lambda would run them: `npm run test:aws`. */

// biome-ignore lint/style/noDefaultExport: vitest takes a configuration by no other name
export default defineConfig({
  test: {
    include: ["test/aws/**/*.aws.test.ts"],
    pool: "forks",
    // Half of the time is waiting: for a queue to hide or to hand out, for a process to start.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
