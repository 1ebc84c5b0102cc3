/** How requests are sent to Nova: at a negotiated microversion, page by page, and a change only once. */
import type { z } from 'zod';
import { type Api, createApi, type GetRequest } from './api.ts';
import { BadAnswer, BadRequest, HttpError, Timeout, Unreachable } from './errors.ts';
import { requestIdOf } from './fault.ts';
import type { VersionNeed } from './microversion.ts';
import type { ActionOutcome } from './novaTypes.ts';
import { Pages } from './paging.ts';
import type { ServiceCall, Session } from './session.ts';

/**
 * The microversions of each call: the lowest that has what Kronos needs, the highest whose answer this client reads.
 * Source: Nova's REST API version history. All of them together work with 2.60 (Queens) and later.
 */
export const NOVA_CALLS = {
  /** 2.41 uuid. */
  listAggregates: { lowest: '2.41', highest: '2.96' },
  /** 2.53 uuid ids; 2.69 services of a cell that is down. */
  listServices: { lowest: '2.53', highest: '2.96' },
  /**
   * 2.53 uuid ids. Not above 2.87: from 2.88 on Nova asks every hypervisor for its uptime, one after the other over the
   * message bus, while the list is made (nova/api/openstack/compute/hypervisors.py), and drops vcpus and cpu_info.
   */
  listHypervisors: { lowest: '2.53', highest: '2.87' },
  /** 2.47 inline flavor with extra_specs; 2.69 cells that are down; 2.96 pinned zone; 2.98 image properties; 2.100 hints. */
  listServers: { lowest: '2.47', highest: '2.100' },
  /** 2.26 tags. */
  listServerIds: { lowest: '2.26', highest: '2.96' },
  /** Below the pinned zone. */
  listServersUnpinned: { lowest: '2.47', highest: '2.95' },
  getServer: { lowest: '2.47', highest: '2.100' },
  getServerTopology: { lowest: '2.78', highest: '2.96' },
  /** 2.61 extra_specs. */
  listFlavors: { lowest: '2.61', highest: '2.96' },
  /** 2.13 project_id; 2.64 policy and rules. */
  listServerGroups: { lowest: '2.13', highest: '2.96' },
  /** 2.59 uuid, paging, newest first. */
  listMigrations: { lowest: '2.59', highest: '2.96' },
  getServerMigration: { lowest: '2.59', highest: '2.96' },
  /** 2.34 answers before the checks are done; 2.68 has no `force`. */
  liveMigrate: { lowest: '2.34', highest: '2.96' },
  /** 2.30 to 2.67 know `force`. */
  forceLiveMigrate: { lowest: '2.34', highest: '2.67' },
  /** 2.56 takes a host; older versions silently ignore it. */
  coldMigrate: { lowest: '2.56', highest: '2.96' },
  resize: { lowest: '2.34', highest: '2.96' },
  confirmResize: { lowest: '2.34', highest: '2.96' },
  revertResize: { lowest: '2.34', highest: '2.96' },
  /** 2.53 by uuid. */
  updateService: { lowest: '2.53', highest: '2.96' },
  /** 2.24 running ones; 2.65 also queued and preparing. */
  abortMigration: { lowest: '2.24', highest: '2.96' },
  /** 2.51 events for every reader; 2.62 host; 2.84 details. */
  getInstanceAction: { lowest: '2.51', highest: '2.96' },
  /** 2.58 paging. */
  listInstanceActions: { lowest: '2.58', highest: '2.96' },
} as const satisfies Readonly<Record<string, VersionNeed>>;

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Options of a call that changes something in the cloud. */
export interface ActOptions extends CallOptions {
  /**
   * Called each time the first byte of the request is about to be written: the last moment to refuse it. A text is the reason
   * for the refusal (its time is over, another process sends it); null permits it.
   */
  readonly checkSend: () => string | null;
}

export interface NovaOptions {
  /** Rows asked for per page; Nova's own `max_limit` (1000) may cut it. */
  readonly pageSize?: number;
}

/** Maximum restarts of a list that changed during paging. */
export const MAX_RESTARTS = 3;

export function createNovaTransport(session: Session, options: NovaOptions) {
  const pageSize = options.pageSize ?? 1000;
  const api: Api = createApi(session, {
    service: 'nova',
    serviceType: 'compute',
    versionPath: 'v2.1',
    versionId: /^v2\.1$/,
    headers: (version) => ({
      'openstack-api-version': `compute ${version}`,
      'x-openstack-nova-api-version': version,
    }),
  });

  const versionFor = (call: keyof typeof NOVA_CALLS, signal?: AbortSignal): Promise<string> =>
    api.negotiated(call, NOVA_CALLS[call], signal);

  async function get<S extends z.ZodType>(
    call: keyof typeof NOVA_CALLS,
    schema: S,
    request: GetRequest,
  ): Promise<z.infer<S>> {
    return api.get(schema, { ...request, version: await versionFor(call, request.signal) });
  }

  /**
   * Follows a list by marker. A marker that was deleted meanwhile (400) restarts the list.
   *
   * @param list its route, for errors
   * @throws BadAnswer when a marker comes again, or the list does not end: a proxy that drops the query, or a broken cell
   */
  async function byMarker<T>(
    list: string,
    page: (marker: string | undefined, limit: number) => Promise<{ rows: readonly T[]; more: boolean }>,
    markerOf: (row: T) => string,
    limit = Number.POSITIVE_INFINITY,
  ): Promise<T[]> {
    for (let restart = 0; ; restart += 1) {
      const all: T[] = [];
      const pages = new Pages({ service: 'nova', url: list });
      try {
        for (let marker: string | undefined; ; ) {
          const { rows, more } = await page(marker, Math.min(pageSize, limit - all.length));
          for (const row of rows) all.push(row);
          const last = rows.at(-1);
          if (!more || last === undefined || all.length >= limit) return all;
          marker = markerOf(last);
          pages.follow(all.length, marker);
        }
      } catch (error) {
        const markerGone = all.length > 0 && error instanceof BadRequest && /marker/i.test(error.reason);
        if (!markerGone || restart >= MAX_RESTARTS) throw error;
      }
    }
  }

  /** Sends a request that changes something, once. */
  async function act(
    call: keyof typeof NOVA_CALLS,
    request: {
      method: 'POST' | 'PUT' | 'DELETE';
      route: string;
      path: string;
      json?: unknown;
      expect?: readonly number[];
    },
    { signal, checkSend }: ActOptions,
  ): Promise<ActionOutcome> {
    const version = await versionFor(call, signal);
    return sendOnce(session, await api.prepare({ expect: [202], ...request, version, signal }), { signal, checkSend });
  }

  return { pageSize, versions: (signal?: AbortSignal) => api.versions(signal), versionFor, get, byMarker, act };
}

/** Sends a call at most once. A request that was sent and has no certain answer has the outcome unknown. */
async function sendOnce(
  session: Session,
  prepared: ServiceCall,
  { signal, checkSend }: ActOptions,
): Promise<ActionOutcome> {
  let sent = false;
  const check = (): string | null => {
    const refusal = checkSend();
    sent = refusal === null;
    return refusal;
  };
  try {
    const answer = await session.call({ ...prepared, idempotent: false, checkSend: check });
    return { outcome: 'accepted', requestId: requestIdOf(answer) };
  } catch (error) {
    const lost = (error instanceof Unreachable || error instanceof Timeout) && error.maybeSent;
    const dubious = error instanceof BadAnswer || (error instanceof HttpError && !isRefusal(error.status));
    if (sent && (lost || dubious || signal?.aborted === true)) return { outcome: 'unknown', error };
    throw error;
  }
}

/** Nova refuses a request with a 4xx. Any other status that it does not document comes from a proxy, which may have passed the request on. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500;

/** Makes the calls of Nova. */
export type NovaTransport = ReturnType<typeof createNovaTransport>;
