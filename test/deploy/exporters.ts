import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir, unpackDebian, withLibraries } from '@kronos/eventlog/testing';

const CACHED = 'exporters-debian';

/** The directory with Debian's node_exporter and libvirt exporter, or the reason that there is none. */
export async function findExporters(): Promise<string | Error> {
  const cached = join(cacheDir(), CACHED);
  if (existsSync(cached)) return cached;
  return await unpackDebian(process.env, CACHED, {
    packages: ['prometheus-node-exporter', 'prometheus-libvirt-exporter'],
    dependencies: true,
  }).catch((error: Error) => error);
}

/** Running exporters, until `stop`. */
export function runExporters(found: string | Error): {
  readonly start: (program: string, args: readonly string[]) => void;
  readonly stop: () => Promise<void>;
} {
  const children: ChildProcess[] = [];
  return {
    start(program, args) {
      if (found instanceof Error) throw found;
      const env = withLibraries(process.env, found);
      children.push(spawn(join(found, 'usr/bin', program), args, { stdio: 'ignore', env }));
    },
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          const gone = new Promise((resolve) => child.once('exit', resolve));
          if (child.exitCode === null && child.kill('SIGTERM')) await gone;
        }),
      );
    },
  };
}

/** A node for libvirt's test driver: each of its VMs uses one CPU and all of its memory, KiB. */
export const libvirtNode = (
  domains: readonly { readonly name: string; readonly uuid: string }[],
  memoryKib = 524_288,
): string =>
  `<node>${domains
    .map(
      ({ name, uuid }) =>
        `<domain type='test'><name>${name}</name><uuid>${uuid}</uuid><memory>${memoryKib}</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>`,
    )
    .join('')}</node>`;
