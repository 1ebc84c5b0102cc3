import type { CloudNetwork, NatsNetwork, Weather } from '../network.ts';
import type { Supervisor } from '../supervisor.ts';

export interface NetworkActs {
  /** The connection of a process to NATS breaks for a while. */
  cut(process: string, ms: number): void;
  /** Messages between a process and NATS arrive late. */
  stall(process: string, ms: number): void;
  /** A process cannot connect to the cloud for a while. */
  refuse(process: string, ms: number): void;
  natsWeather(weather: Weather): void;
  httpDelay(ms: number): void;
}

export function networkActs(supervisor: Supervisor, nats: NatsNetwork, cloud: CloudNetwork): NetworkActs {
  const processOf = (name: string): string => supervisor.processOf(name)?.name ?? '';
  return {
    cut: (name, ms) => nats.cut(processOf(name), ms),
    stall: (name, ms) => nats.stall(processOf(name), ms),
    refuse: (name, ms) => cloud.refuse(processOf(name), ms),
    natsWeather: (weather) => void Object.assign(nats.weather, weather),
    httpDelay(ms) {
      cloud.weather.delayMs = ms;
    },
  };
}
