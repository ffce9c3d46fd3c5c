import * as z from "zod";

/**
 * The operator's settings of time, all in seconds, that functions read as well: apart from the others, which a cold
 * start would make schemas of for nothing.
 */

/** Longest time of an asynchronous job in seconds; a Lambda has 900, and needs some of them to store what was made. */
export const MOST_ASYNC_JOB_SECONDS = 840;

export const TIME_SETTINGS = {
  /** Longest time of a job that is run with `Prefer: respond-async`. */
  asyncJobSeconds: z.int().min(1).max(MOST_ASYNC_JOB_SECONDS).default(300),
  /** Quiet wanted after a server's notification before its list is fetched. */
  debounceSeconds: z.number().min(0.1).max(60).default(0.5),
  /** A stream of notifications without quiet is answered at least this often. */
  longestWaitSeconds: z.number().min(1).max(900).default(15),
  /** How often a list is fetched without any notification, when the server does not say how long it is good. */
  reconcileSeconds: z.int().min(60).max(86_400).default(900),
  /** Past this age a list that could not be fetched again is no longer gone by. */
  maxListAgeSeconds: z.int().min(300).max(2_592_000).default(86_400),
} as const;
