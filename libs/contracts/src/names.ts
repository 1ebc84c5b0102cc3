/**
 * Names on the wire: subjects, tokens and ids.
 *
 * A name from Nova (an aggregate, a host) may hold any Unicode character. A subject token may not hold white space,
 * `.`, `*` or `>`, and a consumer's name neither `/` nor `\`. {@link encodeToken} maps every name to one token and
 * no two names to the same token.
 */

/** The unassigned pool, as it is named on the wire: the hypervisors that belong to no aggregate. */
export const UNASSIGNED = '_unassigned_';
/** Addresses every aggregate; only for controls. */
export const ALL = '_all_';

const PLAIN = /^[A-Za-z0-9_-]$/;
const RESERVED = new Set<string>([UNASSIGNED, ALL]);

/**
 * One subject token for a name: ASCII letters, digits, `-` and `_` stay, every other byte of the UTF-8 form becomes
 * `=XX`; a leading `_` is encoded too, so that {@link UNASSIGNED} and {@link ALL} can never be the token of an ordinary name.
 *
 * @throws RangeError for the empty string and for a string with a lone surrogate: neither has a token.
 */
export function encodeToken(name: string): string {
  if (name === '') throw new RangeError('an empty name has no subject token');
  if (!name.isWellFormed()) throw new RangeError(`the name ${JSON.stringify(name)} is not well-formed Unicode`);
  let token = '';
  for (const byte of new TextEncoder().encode(name)) {
    const char = String.fromCharCode(byte);
    const plain = PLAIN.test(char) && !(char === '_' && token === '');
    token += plain ? char : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return token;
}

/**
 * The name that a token stands for; the inverse of {@link encodeToken}.
 *
 * @throws RangeError when the text is not a token that encodeToken makes.
 */
export function decodeToken(token: string): string {
  const bytes: number[] = [];
  for (let i = 0; i < token.length; i++) {
    const char = token.charAt(i);
    if (char === '=') {
      const hex = token.slice(i + 1, i + 3);
      if (!/^[0-9A-F]{2}$/.test(hex)) throw new RangeError(`${JSON.stringify(token)} is not a subject token of Kronos`);
      bytes.push(Number.parseInt(hex, 16));
      i += 2;
    } else bytes.push(char.charCodeAt(0));
  }
  let name: string;
  try {
    name = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    throw new RangeError(`${JSON.stringify(token)} is not a subject token of Kronos`);
  }
  if (name === '' || encodeToken(name) !== token)
    throw new RangeError(`${JSON.stringify(token)} is not a subject token of Kronos`);
  return name;
}

/** The token of an aggregate in scope: its name encoded, or {@link UNASSIGNED} or {@link ALL} themselves. */
export const aggregateToken = (aggregate: string): string =>
  RESERVED.has(aggregate) ? aggregate : encodeToken(aggregate);

/** The aggregate that a token addresses; the inverse of {@link aggregateToken}. */
export const aggregateOfToken = (token: string): string => (RESERVED.has(token) ? token : decodeToken(token));

/** The subject families of Kronos. */
export const families = [
  'snapshots',
  'plans',
  'migrations',
  'results',
  'controls',
  'ledger',
  'inventory',
  'services',
  'custody',
  'alarms',
] as const;
export type Family = (typeof families)[number];
/** The families whose messages are events of the log. */
export const logFamilies = ['plans', 'results', 'controls', 'custody'] as const satisfies readonly Family[];

/** The name of a process for the family `services`: its service, which has no `/`, and its instance. */
export const instanceName = (service: string, instance: string): string => `${service}/${instance}`;

/**
 * The subject on which a family's messages of one aggregate travel; for `inventory` of one host, for `services` of one
 * process ({@link instanceName}), for `alarms` of one alarm.
 */
export function subject(family: Family, name: string): string {
  if (family === 'services') {
    const [service = '', ...instance] = name.split('/');
    return `kronos.services.${encodeToken(service)}.${encodeToken(instance.join('/'))}`;
  }
  return `kronos.${family}.${ofAggregate(family) ? aggregateToken(name) : encodeToken(name)}`;
}

/** Whether the last token of a family's subjects is an aggregate. */
const ofAggregate = (family: Family): boolean => family !== 'inventory' && family !== 'alarms';

/** All subjects of a family, as a stream and a filter name them. */
export const subjectsOf = (family: Family): string => `kronos.${family}.${family === 'services' ? '*.*' : '*'}`;

/** The family and the name of a subject of Kronos, or null for any other subject. */
export function parseSubject(text: string): { family: Family; name: string } | null {
  const [root, family, token, ...rest] = text.split('.');
  const known = families.find((f) => f === family);
  if (root !== 'kronos' || known === undefined || token === undefined) return null;
  if (rest.length !== (known === 'services' ? 1 : 0)) return null;
  try {
    if (known === 'services')
      return { family: known, name: instanceName(decodeToken(token), decodeToken(rest[0] ?? '')) };
    return { family: known, name: ofAggregate(known) ? aggregateOfToken(token) : decodeToken(token) };
  } catch {
    return null;
  }
}

/** The id of the snapshot that belongs to a cycle: the same for every scorer that takes it. */
export const cycleSnapshotId = (aggregate: string, cycle: number): string => `${aggregateToken(aggregate)}-${cycle}`;

/** The id of the snapshot that a command asked for. */
export const commandSnapshotId = (aggregate: string, commandId: string): string =>
  `${aggregateToken(aggregate)}-c-${commandId}`;

/** The id of a step's task. A plan has the id of the snapshot it was decided on, so it needs no id of its own. */
export const taskId = (planId: string, step: number): string => `${planId}-s${step}`;
const OF_TASK = /^(.*)-s(\d+)$/;
/** The plan of a task, by its id. */
export const planOfTask = (id: string): string => OF_TASK.exec(id)?.[1] ?? id;
/** The step of a task, by its id: 0 for an id of no task. */
export const stepOfTask = (id: string): number => Number(OF_TASK.exec(id)?.[2] ?? 0);

const CELLS = '-cells-';
const CAPACITY = '-capacity-';

/** The id of the plan between cells that a command proposes for an aggregate. */
export const cellsPlanId = (aggregate: string, commandId: string): string =>
  `${aggregateToken(aggregate)}${CELLS}${commandId}`;

/** The id of the plan that makes room for an aggregate, as a command asked. */
export const capacityPlanId = (aggregate: string, commandId: string): string =>
  `${aggregateToken(aggregate)}${CAPACITY}${commandId}`;

/** Whether a plan of that id can be one that a person asked for. An aggregate's name can give a cycle's plan that form too. */
export const maybeAskedPlan = (planId: string): boolean => planId.includes(CELLS) || planId.includes(CAPACITY);

/** Deterministic message ids (`Nats-Msg-Id`): a retry of the same act has the same id. */
export const messageId = {
  snapshot: (snapshotId: string) => `snapshot.taken:${snapshotId}`,
  configured: (aggregate: string, optionsDigest: string, basis: number) =>
    `planner.configured:${aggregateToken(aggregate)}:${optionsDigest}:${basis}`,
  decided: (snapshotId: string) => `cycle.decided:${snapshotId}`,
  proposed: (planId: string) => `plan.proposed:${planId}`,
  dispatched: (planId: string) => `plan.dispatched:${planId}`,
  withdrawn: (planId: string) => `plan.withdrawn:${planId}`,
  requested: (task: string, attempt: number) => `migration.requested:${task}:${attempt}`,
  started: (task: string, attempt: number) => `migration.started:${task}:${attempt}`,
  observed: (task: string, attempt: number) => `migration.observed:${task}:${attempt}`,
  abortRequested: (task: string, attempt: number) => `migration.abortRequested:${task}:${attempt}`,
  /** One per attempt: the first refusal. */
  abortRefused: (task: string, attempt: number) => `migration.abortRefused:${task}:${attempt}`,
  verifying: (task: string, attempt: number) => `migration.verifying:${task}:${attempt}`,
  verified: (task: string, attempt: number) => `migration.verified:${task}:${attempt}`,
  /** One per attempt: it is confirmed or reverted, never both. */
  settleRequested: (task: string, attempt: number) => `migration.settleRequested:${task}:${attempt}`,
  /** `occasion`: which delivery of the message, and which of its trials. */
  suspected: (task: string, attempt: number, occasion: string, tries: number) =>
    `migration.suspected:${task}:${attempt}:${occasion}:${tries}`,
  /** One per attempt: an attempt has exactly one outcome: completed, failed or skipped. */
  ended: (task: string, attempt: number) => `migration.ended:${task}:${attempt}`,
  /** `drainId`: the id of the command that asked for the drain. */
  hostClaimed: (drainId: string, act: string, attempt: number) => `host.claimed:${drainId}:${act}:${attempt}`,
  hostActFailed: (drainId: string, act: string, attempt: number) => `host.actFailed:${drainId}:${act}:${attempt}`,
  hostDisabled: (drainId: string) => `host.disabled:${drainId}`,
  hostDrained: (drainId: string) => `host.drained:${drainId}`,
  /** A drain has exactly one end, whether its host was enabled or left disabled. */
  hostDrainEnded: (drainId: string) => `host.drainEnded:${drainId}`,
  installation: (installationId: string) => `installation.created:${installationId}`,
  seen: (where: string, installationId: string | null, sequence: number) =>
    `log.seen:${where}:${installationId ?? ''}:${sequence}`,
  /** `acts`: what led to it, as a digest; `after`: sequence of the host's message before. */
  inventory: (host: string, after: number, acts: string) => `inventory.reported:${encodeToken(host)}:${after}:${acts}`,
  /** `state`: raised or resolved; `raisedAt`: when it was raised. */
  alarm: (state: string, key: string, raisedAt: string) => `alarm.${state}:${encodeToken(key)}:${raisedAt}`,
  control: (commandId: string) => `control:${commandId}`,
  /** One per heartbeat: the time at which it was made, in ms since the epoch. */
  reported: (service: string, instance: string, atMs: number) => `service.reported:${service}:${instance}:${atMs}`,
  /** Names the installation too: a new log reaches the sequences of a lost one. */
  checkpoint: (aggregate: string, sequence: number, installationId: string | null) =>
    `state.checkpointed:${aggregateToken(aggregate)}:${sequence}${installationId === null ? '' : `:${installationId}`}`,
} as const;
