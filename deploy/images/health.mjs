// The health check of an image: 0 when the address in KRONOS_HEALTH answers with 2xx, else 1 with the reason. An argument
// takes the place of the path, such as /readyz.
const [, , path] = process.argv;
const health = process.env.KRONOS_HEALTH ?? '';
const address = path === undefined ? health : new URL(path, health).href;
try {
  const response = await fetch(address, { signal: AbortSignal.timeout(4000) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
} catch (error) {
  process.stderr.write(`${address}: ${error instanceof Error ? (error.cause?.message ?? error.message) : error}\n`);
  process.exitCode = 1;
}
