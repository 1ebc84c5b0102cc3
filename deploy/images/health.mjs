// The health check of an image: 0 when the address in KRONOS_HEALTH answers with 2xx, else 1 with the reason.
const address = process.env.KRONOS_HEALTH ?? '';
try {
  const response = await fetch(address, { signal: AbortSignal.timeout(4000) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
} catch (error) {
  process.stderr.write(`${address}: ${error instanceof Error ? (error.cause?.message ?? error.message) : error}\n`);
  process.exitCode = 1;
}
