import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ClusterFile } from '@kronos/placement';
import { cpuTime } from '../cpuTime.ts';
import { HOST, type Placement, placementOf } from './cluster.ts';

const run = promisify(execFile);

/** The command, or null where it is not installed. */
export function findHbal(): string | null {
  const command = process.env.KRONOS_BENCH_HBAL ?? 'hbal';
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return command;
  } catch {
    return null;
  }
}

export type Balanced = {
  /** Of CPU. */
  readonly seconds: number;
  readonly moves: number;
  readonly placement: Placement;
  /** hbal's own measure of its placement: lower is better. */
  readonly score: number;
};

/** Balances the cluster with hbal's defaults; within a time limit in seconds of the clock. */
export async function hbal(
  command: string,
  directory: string,
  file: ClusterFile,
  limitSeconds: number,
): Promise<Balanced> {
  const [text, use] = write(directory, file, placementOf(file));
  const args = ['-t', text, '-U', use, '-S', join(directory, 'out')];
  const { stdout, seconds } = await cpuTime(command, args, limitSeconds);
  const moves = Number(/Solution length=(\d+)/.exec(stdout)?.[1] ?? Number.NaN);
  const placement = readPlacement(readFileSync(join(directory, 'out.balanced'), 'utf8'), file);
  return { seconds, moves, placement, score: await hbalScore(command, directory, file, placement) };
}

/** hbal's own measure of a placement. */
export async function hbalScore(
  command: string,
  directory: string,
  file: ClusterFile,
  placement: Placement,
): Promise<number> {
  const [text, use] = write(directory, file, placement);
  const { stdout } = await run(command, ['-t', text, '-U', use, '-l', '0']);
  return Number(/Initial score: ([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN);
}

/**
 * The cluster in the text form of htools, and the file of what VMs use (`hbal -U`). Instances have a disk template with
 * external mirroring, or hbal would not move them; anti-affinity groups are exclusion tags.
 */
function write(directory: string, file: ClusterFile, at: Placement): [text: string, use: string] {
  const used = new Map<string, number>();
  for (const vm of file.vms) {
    const host = at.get(vm.id) ?? vm.host;
    used.set(host, (used.get(host) ?? 0) + (vm.memMb ?? 0));
  }
  const tags = new Map<string, string>();
  for (const group of file.groups ?? []) for (const id of group.vms) tags.set(id, `ex:${group.id}`);
  const { memoryMb, reservedMb, cores } = HOST;
  const disk = 10_000_000;
  const nodes = file.hosts.map((host, h) => {
    const free = memoryMb - reservedMb - (used.get(host.id) ?? 0);
    const role = h === 0 ? 'M' : 'N';
    return `${host.id}|${memoryMb}|${reservedMb}|${free}|${disk}|${disk}|${cores}|${role}|group-uuid|1||N|0|1|1.0`;
  });
  const instances = file.vms.map((vm) => {
    const host = at.get(vm.id) ?? vm.host;
    return `${vm.id}|${vm.memMb}|1|${vm.vcpus}|running|Y|${host}||rbd|${tags.get(vm.id) ?? ''}|1|0|N`;
  });
  const limits = `128,1,0,0,0,1|128,1,0,0,0,0;${memoryMb},64,10485760,16,8,100000|diskless,rbd|${HOST.cpuRatio}.0|10000.0`;
  const sections = [
    'group|group-uuid|preferred||',
    nodes.join('\n'),
    instances.join('\n'),
    tags.size > 0 ? 'htools:iextags:ex' : '',
    `|${limits}\ngroup|${limits}`,
  ];
  const text = join(directory, 'cluster.hbal');
  const use = join(directory, 'cluster.util');
  writeFileSync(text, `${sections.join('\n\n')}\n`);
  writeFileSync(use, file.vms.map((vm) => `${vm.id} ${vm.w[0]} ${vm.w[1]} 0 0\n`).join(''));
  return [text, use];
}

function readPlacement(text: string, file: ClusterFile): Placement {
  const known = new Set(file.vms.map((vm) => vm.id));
  const placement = new Map<string, string>();
  for (const line of text.split('\n')) {
    const fields = line.split('|');
    const [id = '', host = ''] = [fields[0], fields[6]];
    if (known.has(id)) placement.set(id, host);
  }
  return placement;
}
