import type { Decision } from '@kronos/contracts';
import { canonicalJson } from '@kronos/contracts';
import { type DrainInput, type HostDrain, hostDrains } from '@kronos/cycle';
import { type DecideInput, type Explanation, explain } from '@kronos/placement';
import { openSnapshot, type StoredBody } from '@kronos/replay';
import {
  type FoundNames,
  findNames,
  namesOfSnapshot,
  type Skyline,
  type SnapshotNames,
  searchNames,
  vmNames,
} from './names.ts';
import { type SnapshotValues, valuesIn, valuesOf } from './values.ts';

/** The computations of the ledger beside its event loop, each with its answer. */
export type Orders = {
  /** Keeps the names of an aggregate's snapshot; null forgets them. */
  names: { readonly ask: { readonly aggregate: string; readonly body: StoredBody | null }; readonly answer: null };
  /** By aggregate: how many hosts and VMs its newest snapshot has, and the hosts by value. */
  skylines: {
    readonly ask: object;
    readonly answer: readonly {
      readonly aggregate: string;
      readonly hosts: number;
      readonly vms: number;
      readonly skylines: readonly Skyline[];
    }[];
  };
  find: { readonly ask: { readonly query: string; readonly limit: number }; readonly answer: FoundNames };
  /** The names of VMs by uuid, as pairs; one that no kept snapshot has is left out. */
  named: { readonly ask: { readonly ids: readonly string[] }; readonly answer: readonly (readonly [string, string])[] };
  /** `input` null: only if the decision is still known. The answer `unknown` asks for it. */
  vm: {
    readonly ask: {
      readonly sequence: number;
      readonly serverId: string;
      readonly input: { readonly decide: DecideInput; readonly recorded: Decision } | null;
    };
    readonly answer: { readonly same: boolean; readonly vm: ReturnType<Explanation['vm']> } | 'unknown';
  };
  /** Values of a host by policy, snapshot by snapshot. `body` null: only if the snapshot is still known, else the answer is `unknown`. */
  values: {
    readonly ask: {
      readonly host: string;
      readonly snapshots: readonly { readonly id: string; readonly body: StoredBody | null }[];
    };
    readonly answer: readonly (Readonly<Record<string, number | null>> | null | 'unknown')[];
  };
  drain: { readonly ask: DrainInput; readonly answer: readonly HostDrain[] };
};
export type WorkKind = keyof Orders;
export type WorkOrder = { readonly [K in WorkKind]: { readonly kind: K } & Orders[K]['ask'] }[WorkKind];

/** Decisions that were made again and are kept, with everything that they were made of. */
const KEPT = 2;
/** Snapshots whose values are kept. */
const KEPT_VALUES = 600;

type MadeAgain = { readonly same: boolean; readonly explanation: Explanation };

function madeAgain({ decide, recorded }: NonNullable<Orders['vm']['ask']['input']>): MadeAgain {
  const explanation = explain(decide);
  return { explanation, same: canonicalJson(explanation.decision) === canonicalJson(recorded) };
}

/** Carries out one order after the other. */
export function createWork(): (order: WorkOrder) => Orders[WorkKind]['answer'] {
  const names = new Map<string, SnapshotNames>();
  /** By log sequence; the one that was asked about last is the last. */
  const decisions = new Map<number, MadeAgain>();

  /** By snapshot id. */
  const values = new Map<string, SnapshotValues>();

  function decisionOf({ sequence, input }: Extract<WorkOrder, { kind: 'vm' }>) {
    const kept = decisions.get(sequence) ?? (input === null ? null : madeAgain(input));
    if (kept === null) return null;
    decisions.delete(sequence);
    decisions.set(sequence, kept);
    for (const oldest of decisions.keys()) {
      if (decisions.size <= KEPT) break;
      decisions.delete(oldest);
    }
    return kept;
  }

  return (order) => {
    switch (order.kind) {
      case 'names': {
        const { aggregate, body } = order;
        names.delete(aggregate);
        if (body === null) return null;
        names.set(aggregate, searchNames(body.bytes) ?? namesOfSnapshot(openSnapshot(body).snapshot));
        return null;
      }
      case 'skylines':
        return [...names].map(([aggregate, { hosts, vms, skylines }]) => ({
          aggregate,
          hosts: hosts.length,
          vms: vms.length,
          skylines,
        }));
      case 'find':
        return findNames(names, order.query, order.limit);
      case 'named':
        return vmNames(names, new Set(order.ids));
      case 'vm': {
        const decision = decisionOf(order);
        return decision === null ? 'unknown' : { same: decision.same, vm: decision.explanation.vm(order.serverId) };
      }
      case 'values':
        return order.snapshots.map(({ id, body }) => {
          const known = values.get(id) ?? (body === null ? undefined : valuesIn(openSnapshot(body).snapshot));
          if (known === undefined) return 'unknown';
          values.set(id, known);
          const [oldest] = values.keys();
          if (values.size > KEPT_VALUES && oldest !== undefined) values.delete(oldest);
          return valuesOf(known, order.host);
        });
      case 'drain':
        return hostDrains(order);
    }
  };
}
