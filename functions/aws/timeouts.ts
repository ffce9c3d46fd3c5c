/** How long a function waits for an AWS service; the same for every client, so that one sum holds for all of them. */

/**
 * The SDK waits for ever by default, and a `requestTimeout` alone only writes a warning. Three attempts of two seconds
 * let a hung service fail while the function still has time to say so; S3 itself advises to retry after two seconds.
 * `socketTimeout` ends a body that stops coming.
 */
export const AWS_TIMEOUTS = {
  connectionTimeout: 1000,
  requestTimeout: 2000,
  socketTimeout: 2000,
  throwOnRequestTimeout: true,
} as const;

export const AWS_ATTEMPTS = 3;
