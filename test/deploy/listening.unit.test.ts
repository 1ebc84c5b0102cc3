import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const read = (file: string): string => readFileSync(join(import.meta.dirname, '../../deploy', file), 'utf8');

/** The part of a compose file that controls who can connect. */
type Service = {
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly networks?: readonly string[];
  readonly network_mode?: string;
  readonly ports?: readonly string[];
};

describe('nothing listens on all addresses unless something else restricts who may connect', () => {
  const { services, networks } = parse(read('compose/compose.yaml'), { merge: true }) as {
    readonly services: Readonly<Record<string, Service>>;
    readonly networks: Readonly<Record<string, object | null>>;
  };

  it('compose: a service that does is on the network of the project alone', () => {
    const open = Object.values(services).filter(({ environment }) => environment?.OS_HTTP__ADDRESS === '0.0.0.0');
    expect(open.length).toBeGreaterThanOrEqual(4);
    for (const service of open) {
      expect(service.networks).toEqual(['kronos']);
      expect(service.network_mode).toBeUndefined();
    }
    expect(networks).toEqual({ kronos: {} });
  });

  it('compose: each port is published on 127.0.0.1, unless a variable says otherwise', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports.length).toBeGreaterThanOrEqual(1);
    for (const port of ports) expect(port).toMatch(/^(\$\{KRONOS_\w+:-)?127\.0\.0\.1:\d+\}?:\d+$/);
  });

  it('images: none changes the address that is the default', () => {
    const instructions = read('images/Dockerfile')
      .split('\n')
      .filter((line) => !line.startsWith('#'));
    for (const line of instructions) expect(line).not.toMatch(/HTTP__ADDRESS|0\.0\.0\.0/);
  });
});
