/** The state of a host by the record of its nova-compute. */

interface Service {
  readonly state: string;
  readonly status: string;
  readonly forcedDown: boolean;
}

/** The nova-compute of a host; null when there is none, or more than one: then nothing certain is known. */
export function serviceOf<S extends { readonly host: string }>(services: readonly S[], host: string): S | null {
  const found = services.filter((service) => service.host === host);
  return found.length === 1 ? (found[0] ?? null) : null;
}

/** Whether its nova-compute works: VMs can leave it. One that is forced down counts as down, whatever it reports. */
export const isUp = ({ state, forcedDown }: Pick<Service, 'state' | 'forcedDown'>): boolean =>
  state === 'up' && !forcedDown;

/** The state of a service in one word. */
export const serviceText = ({ state, status, forcedDown }: Service): string =>
  forcedDown ? 'forced down' : state === 'up' ? status : state;

/** Whether it can be a destination: Nova's scheduler takes no other host. */
export const isServing = (service: Service): boolean => isUp(service) && service.status === 'enabled';
