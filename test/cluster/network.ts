import { execFileSync } from 'node:child_process';
import type { ClusterNode } from '@kronos/eventlog/testing';

const ip = (...args: string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** A network namespace that is reached over one cable, which can be pulled. */
export interface Island {
  /** For a server on this side of the cable, and for one on the island. */
  readonly mainland: ClusterNode;
  readonly island: ClusterNode;
  /** Drops every packet from now on. Neither end gets an error. */
  pull(): void;
  plug(): void;
  remove(): void;
}

/** Why there can be no island here; null when there can. */
export function noIslands(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need root on Linux';
  try {
    makeIsland().remove();
    return null;
  } catch (error) {
    return `network namespaces cannot be made here: ${error instanceof Error ? error.message : error}`;
  }
}

let made = 0;

/** @throws Error when the system does not let this process make one */
export function makeIsland(): Island {
  made += 1;
  const name = `kronos-${process.pid}-${made}`;
  const [near, far] = [`kr${process.pid}n${made}`, `kr${process.pid}f${made}`];
  // Of 198.18.0.0/15, which RFC 2544 sets apart for tests of networks.
  const net = `198.18.${process.pid % 250}`;
  const [here, there] = [`${net}.${made * 4 + 1}`, `${net}.${made * 4 + 2}`];
  const remove = () => {
    try {
      ip('netns', 'del', name);
    } catch {
      // It was not made.
    }
  };
  ip('netns', 'add', name);
  try {
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name);
    ip('addr', 'add', `${here}/30`, 'dev', near);
    ip('link', 'set', near, 'up');
    const inside = (...args: string[]) => ip('-n', name, ...args);
    inside('link', 'set', 'lo', 'up');
    inside('addr', 'add', `${there}/30`, 'dev', far);
    inside('link', 'set', far, 'up');
    return {
      mainland: { address: here },
      island: { address: there, namespace: name },
      // The island's end goes down: this end keeps its address and its routes, and what is sent gets lost.
      pull: () => void inside('link', 'set', far, 'down'),
      plug: () => void inside('link', 'set', far, 'up'),
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}
