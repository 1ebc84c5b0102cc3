/** One observation of the cloud, shared by the snapshots that are taken from it. */
import type { Clock } from '@kronos/clock';
import type { Policy, QueryUse, ServerListing } from '@kronos/contracts';
import { atLeastMicroversion, type Nova } from '@kronos/openstack';
import type { Prometheus } from '@kronos/prometheus';
import { attributes, type SpanName, spans } from '@kronos/telemetry';
import type { Attributes } from '@opentelemetry/api';
import type { CloudLists, Fate, KnownServer } from './cloud.ts';
import { collectFates, collectLists, fetched, type ListPart } from './collect.ts';
import { hostNamesOf, vmNamesOf } from './names.ts';
import { askAll } from './query.ts';
import { type MatchedAnswers, matchAnswers, type QueryAnswer, type Question, questionsOf } from './readings.ts';
import { everyServer, type ServerSource } from './serverSource.ts';
import { indexServers, type ServerIndex } from './servers.ts';

/** A piece of shared work, to be shown in the trace of every snapshot that it served. */
export interface Piece {
  readonly name: SpanName;
  readonly fromMs: number;
  readonly toMs: number;
  readonly attributes: Attributes;
  /** The failure; null: none. */
  readonly failure: string | null;
}

/** The duration of one list of Nova, or of one query of Prometheus. */
export type ReadDuration =
  | { readonly of: 'list'; readonly part: ListPart; readonly ok: boolean; readonly milliseconds: number }
  | { readonly of: 'query'; readonly use: QueryUse; readonly milliseconds: number };

export interface Observation {
  /** When the first read began, ms since the epoch. */
  readonly fromMs: number;
  readonly lists: CloudLists;
  /** Whether Nova live-migrates servers with a virtual TPM whose secret is the host's; undefined: its version is not known. */
  readonly vtpmMoves: boolean | undefined;
  readonly index: ServerIndex;
  /** By service host: where the list of its servers came from. */
  readonly listings: ReadonlyMap<string, ServerListing>;
  readonly answers: MatchedAnswers;
  /** The answers before they were matched, by query. */
  readonly asked: readonly QueryAnswer[];
  readonly fates: ReadonlyMap<string, Fate>;
  readonly pieces: readonly Piece[];
  readonly durations: readonly ReadDuration[];
}

export interface ObserveInput {
  /** Null where Nova cannot be asked: every list is unknown. */
  readonly nova: Nova | null;
  /** The source of the servers; by default every server is read. */
  readonly servers?: ServerSource;
  /** Null in the rules-only mode: nothing is asked. */
  readonly prometheus: Prometheus | null;
  readonly policies: readonly Policy[];
  readonly stalenessMs: number;
  /** Without an answer for this time Prometheus counts as unreachable. */
  readonly queryDeadlineMs: number;
  readonly concurrency: number;
  /** The servers that must be found, or found deleted. */
  readonly known: readonly KnownServer[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Nova 33, which live-migrates servers with a virtual TPM whose secret is the host's. */
const VTPM_MOVES = '2.103';

const notAsked = { ok: false, code: 'KRONOS_NOT_ASKED', text: 'Nova was not asked' } as const;
const unasked: CloudLists = {
  aggregates: notAsked,
  services: notAsked,
  hypervisors: notAsked,
  servers: notAsked,
  serverGroups: notAsked,
  migrations: notAsked,
};

type CloudRead = Pick<Observation, 'lists' | 'vtpmMoves' | 'index' | 'listings' | 'fates'>;

const unknownCloud = (): CloudRead => ({
  lists: unasked,
  vtpmMoves: undefined,
  index: indexServers([], []),
  listings: new Map(),
  fates: new Map(),
});

/**
 * The fates of servers that the list lacks. While a cell is down, the list lacks all of its servers, and Nova tries the database of the
 * cell for each single read: then no server is read.
 */
async function fatesOf(
  nova: Nova,
  { services }: Pick<CloudLists, 'services'>,
  absent: readonly string[],
  { concurrency, signal }: Pick<ObserveInput, 'concurrency' | 'signal'>,
): Promise<Map<string, Fate>> {
  if (!services.ok || !services.value.some(({ cellDown }) => cellDown))
    return collectFates(nova, absent, concurrency, signal);
  return new Map(absent.map((id) => [id, { fate: 'unknown', text: 'a cell is down' }]));
}

async function movesVtpm(nova: Nova, signal: AbortSignal): Promise<boolean | undefined> {
  const versions = await fetched(() => nova.versions({ signal }), signal);
  return versions.ok ? atLeastMicroversion(versions.value.max, VTPM_MOVES) : undefined;
}

/**
 * Reads Nova's lists and asks Prometheus, at the same time.
 *
 * @throws the signal's reason when it aborts; nothing else: what could not be read is part of the observation.
 */
export async function readCloud(input: ObserveInput): Promise<Observation> {
  const { nova, clock, signal } = input;
  const pieces: Piece[] = [];
  const durations: ReadDuration[] = [];
  const fromMs = clock.now();

  const collect = async (): Promise<CloudRead> => {
    if (nova === null) return unknownCloud();
    const source = input.servers ?? everyServer(nova, clock);
    const lists = await collectLists({ nova, source, clock }, signal, (part, ok, milliseconds) => {
      durations.push({ of: 'list', part, ok, milliseconds });
    });
    const index = indexServers(
      lists.servers.ok ? lists.servers.value : [],
      lists.migrations.ok ? lists.migrations.value : [],
      clock.now(),
    );
    const absent = lists.servers.ok ? input.known.map((one) => one.id).filter((id) => !index.listed.has(id)) : [];
    const fates = await fatesOf(nova, lists, [...new Set(absent)], input);
    pieces.push({
      name: spans.observe,
      fromMs,
      toMs: clock.now(),
      attributes: { [attributes.servers]: index.placed.size },
      failure: unreadText(lists),
    });
    return { lists, vtpmMoves: await movesVtpm(nova, signal), index, listings: listingsOf(lists, source), fates };
  };

  const around = async (question: Question, ask: () => Promise<QueryAnswer>): Promise<QueryAnswer> => {
    const from = clock.now();
    const answer = await ask();
    const toMs = clock.now();
    const use = question.uses[0]?.use ?? 'imbalance';
    durations.push({ of: 'query', use, milliseconds: toMs - from });
    pieces.push({
      name: spans.query,
      fromMs: from,
      toMs,
      attributes: {
        [attributes.policy]: [...new Set(question.uses.map((one) => one.policy))],
        [attributes.query]: question.query,
      },
      failure: answer.failure?.text ?? null,
    });
    return answer;
  };

  const questions = input.prometheus === null ? [] : questionsOf(input.policies);
  const [cloud, answers] = await Promise.all([
    collect(),
    input.prometheus === null || questions.length === 0
      ? []
      : askAll({
          prometheus: input.prometheus,
          questions,
          stalenessMs: input.stalenessMs,
          clock,
          concurrency: input.concurrency,
          deadlineMs: input.queryDeadlineMs,
          signal,
          around,
        }),
  ]);
  const matched = matchAnswers({
    policies: input.prometheus === null ? [] : input.policies,
    answers,
    stalenessMs: input.stalenessMs,
    hosts: hostNamesOf(cloud.lists),
    vms: vmNamesOf(cloud.index),
  });
  return { fromMs, ...cloud, answers: matched, asked: answers, pieces, durations };
}

/** Names the lists that could not be read; null: every one was. */
function unreadText(lists: CloudLists): string | null {
  const unread = Object.entries(lists).filter(([, part]: [string, CloudLists[ListPart]]) => !part.ok);
  return unread.length === 0 ? null : `not read: ${unread.map(([part]) => part).join(', ')}`;
}

function listingsOf(lists: CloudLists, source: Pick<ServerSource, 'listingOf'>): Map<string, ServerListing> {
  const listings = new Map<string, ServerListing>();
  if (!lists.servers.ok || !lists.hypervisors.ok) return listings;
  for (const { service } of lists.hypervisors.value) {
    const listing = source.listingOf(service.host);
    if (listing !== null) listings.set(service.host, listing);
  }
  return listings;
}
