/** Moves as people tell them: which VMs leave which hosts, and for which. Pure. */
import { copiedMb } from './sizes.js';
import { count, listed, memoryText } from './words.js';

/**
 * The steps that were still to be done when the hosts looked so.
 *
 * @param doneAt when each VM's move was completed, by uuid: tells it where the picture has too many VMs to name their hosts
 */
export function stepsLeft(steps, { vms, hosts, snapshot }, doneAt) {
  if (vms === null) return steps.filter(({ serverId }) => !(doneAt.get(serverId) <= snapshot.time));
  const on = new Map(vms.ids.map((id, i) => [id, hosts[vms.hosts[i]].name]));
  return steps.filter(({ serverId, to }) => on.get(serverId) !== to);
}

/** More hosts than these are counted in a sentence, and not named. */
const NAMED_HOSTS = 2;

const hostsText = (names, short) =>
  names.length > NAMED_HOSTS ? count(names.length, 'host') : listed(names.map((name) => short(name)));

const unique = (names) => [...new Set(names)];

/** How many VMs leave which hosts, and for which, in one sentence: `8 VMs leave host-001 and host-002 for 6 hosts`. @param short of a host's name */
export function leaving(steps, short = (name) => name) {
  const [vms, from, to] = ['serverId', 'from', 'to'].map((key) => unique(steps.map((step) => step[key])));
  return `${count(vms.length, 'VM')} ${vms.length === 1 ? 'leaves' : 'leave'} ${hostsText(from, short)} for ${hostsText(to, short)}`;
}

const ofPair = (from, to, steps) => ({ from, to, steps, mb: steps.reduce((sum, step) => sum + copiedMb(step), 0) });

/** The moves of each pair of hosts together: those off one host follow each other. */
export const pairs = (steps) =>
  [...Map.groupBy(steps, ({ from }) => from).values()].flatMap((off) =>
    [...Map.groupBy(off, ({ to }) => to)].map(([to, own]) => ofPair(own[0].from, to, own)),
  );

/** More moves cannot be told apart by their names: they are summed per pair of hosts. */
const MOST_NAMES = 12;
export const named = (steps) => steps.length <= MOST_NAMES;

/** The flows from host to host: each move by itself, or the moves of a pair where there are many. */
export const flows = (steps) => (named(steps) ? steps.map((step) => ofPair(step.from, step.to, [step])) : pairs(steps));

/** The VMs of a flow: `web-12`, or `3 VMs` where the moves are summed. */
export const flowText = ({ steps }, byName) =>
  byName || steps.length === 1 ? listed(steps.map(({ serverName }) => serverName)) : count(steps.length, 'VM');

/** The memory and the disk that a flow copies. */
export const sizeText = ({ mb }) => memoryText(mb);
