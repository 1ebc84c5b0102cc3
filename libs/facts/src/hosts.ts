/** What the record of a nova-compute means for its host. */

interface Service {
  readonly state: string;
  readonly status: string;
  readonly forcedDown: boolean;
}

/** Whether its nova-compute works: VMs can leave it. One that is forced down counts as down, whatever it reports. */
export const isUp = ({ state, forcedDown }: Pick<Service, 'state' | 'forcedDown'>): boolean =>
  state === 'up' && !forcedDown;

/** Whether it can be a destination: Nova's scheduler takes no other host. */
export const isServing = (service: Service): boolean => isUp(service) && service.status === 'enabled';
