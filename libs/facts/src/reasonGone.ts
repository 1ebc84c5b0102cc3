/** An evacuation empties a host that is disabled: once the host is enabled, its servers stay, and waiting steps have lost their reason. */
export const evacuationIsOver = (source: { readonly status: string }): boolean => source.status === 'enabled';

/**
 * A repair moves a server that is pinned to another zone than its host's, or off a host on which more is claimed than it has. An unknown pin
 * proves nothing.
 *
 * @param claims on the host, of each resource class
 */
export const repairIsOver = (
  { pin, zone }: { readonly pin: string | null | undefined; readonly zone: string | null },
  claims: readonly { readonly used: number; readonly capacity: number }[],
): boolean =>
  pin !== undefined && (pin === null || pin === zone) && claims.every(({ used, capacity }) => used <= capacity);
