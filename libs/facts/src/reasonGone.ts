/** An evacuation empties a host that is disabled: once the host is enabled, its servers stay, and waiting steps have lost their reason. */
export const evacuationIsOver = (source: { readonly status: string }): boolean => source.status === 'enabled';
