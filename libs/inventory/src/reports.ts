/**
 * One host on the stream: its list, and the facts of recent notifications. Pure.
 *
 * Only the newest message of each host is kept, so each one has everything that a reader needs who missed those before it. A
 * notice names the stream sequence of the message that it was added to: a reader that has seen the message with sequence N
 * has not seen the notices that were added to N or later, whatever the clocks say.
 */

/** The facts of one notification. */
interface Notice {
  /** Null: it came from the host's nova-compute and names no server. */
  readonly server: string | null;
  /** The server is deleted, which is final. */
  readonly deleted: boolean;
  /** The nova-compute of this host sent it. */
  readonly own: boolean;
  /** Nova's event type. */
  readonly event: string;
  /** Sequence of the host's message that it was added to; 0: there was none. */
  readonly after: number;
}

export interface HostReport {
  /** Ids of every server of the host; null: its list was not read yet. */
  readonly instances: readonly string[] | null;
  /** Oldest first, one per server. */
  readonly notices: readonly Notice[];
  /** A reader that has seen less than this may have missed notices. */
  readonly completeFrom: number;
  /** Sequence of the host's message before this one; 0: there was none. */
  readonly after: number;
}

/** A report as the stream holds it. */
export interface StoredReport {
  readonly report: HostReport;
  readonly sequence: number;
}

/** The facts of a notification about one host. */
export interface Heard extends Omit<Notice, 'after'> {
  /** The server is on this host now; null: it names none. */
  readonly here: boolean;
}

/** One notification, as far as it concerns the lists of hosts. */
export interface Said {
  /** The server that it is about; null: it names none. `host`: where the server is now; null: on none. */
  readonly server: { readonly id: string; readonly host: string | null; readonly deleted: boolean } | null;
  readonly event: string;
  /** The host whose nova-compute sent it; null: another service did. */
  readonly compute: string | null;
  /** The host of the process that sent it. */
  readonly publisherHost: string;
}

/**
 * The facts of a batch of notifications about each host: where the server is, where it was, and whose nova-compute spoke.
 *
 * @param lists the newest report of each host; each list is read once, however many notifications there are
 */
export function heardByHost(
  said: readonly Said[],
  lists: Iterable<readonly [string, StoredReport]>,
): Map<string, Heard[]> {
  const listedOn = hostsOfListed(said, lists);
  const heard = new Map<string, Heard[]>();
  for (const one of said) {
    const { server, compute } = one;
    const listed = server === null ? [] : (listedOn.get(server.id) ?? []);
    const hosts = new Set([server?.host ?? null, compute, ...listed].filter((host) => host !== null));
    // A server that is on no host is recorded for the host that reported it.
    if (hosts.size === 0) hosts.add(one.publisherHost);
    for (const host of hosts) {
      const list = heard.get(host) ?? [];
      list.push(heardOn(host, one));
      heard.set(host, list);
    }
  }
  return heard;
}

/** The hosts whose lists have each server that is named. */
function hostsOfListed(
  said: readonly Said[],
  lists: Iterable<readonly [string, StoredReport]>,
): ReadonlyMap<string, readonly string[]> {
  const listedOn = new Map<string, string[]>();
  for (const { server } of said) if (server !== null) listedOn.set(server.id, []);
  if (listedOn.size > 0)
    for (const [host, { report }] of lists) for (const id of report.instances ?? []) listedOn.get(id)?.push(host);
  return listedOn;
}

const heardOn = (host: string, { server, compute, event }: Said): Heard => ({
  server: server?.id ?? null,
  deleted: server?.deleted ?? false,
  here: server?.host === host && !server.deleted,
  own: compute === host,
  event,
});

/** Older notices that a message repeats for readers that lag. */
const REPEATED = 64;

const NONE: HostReport = { instances: null, notices: [], completeFrom: 0, after: 0 };

/** The report after more notifications; `before`: the newest message of the host, null when it has none. */
export function heardReport(before: StoredReport | null, heard: readonly Heard[]): HostReport {
  const { report, sequence } = before ?? { report: NONE, sequence: 0 };
  const notices = new Map(report.notices.map((notice) => [notice.server, notice]));
  let instances = report.instances === null ? null : new Set(report.instances);
  for (const { here, ...notice } of heard) {
    const known = notices.get(notice.server);
    notices.delete(notice.server);
    notices.set(notice.server, {
      ...notice,
      deleted: notice.deleted || known?.deleted === true,
      own: notice.own || (known?.own === true && known.after === sequence),
      after: sequence,
    });
    if (instances === null || notice.server === null) continue;
    instances = new Set(instances);
    if (here && notices.get(notice.server)?.deleted !== true) instances.add(notice.server);
    else instances.delete(notice.server);
  }
  return trimmed(report, sequence, instances, [...notices.values()]);
}

/** The report after the whole list of the host was read; null: it is as it was. */
export function readReport(before: StoredReport | null, ids: ReadonlySet<string>): HostReport | null {
  const { report, sequence } = before ?? { report: NONE, sequence: 0 };
  const { instances } = report;
  if (instances !== null && instances.length === ids.size && instances.every((id) => ids.has(id))) return null;
  return trimmed(report, sequence, ids, report.notices);
}

function trimmed(
  before: HostReport,
  after: number,
  instances: ReadonlySet<string> | null,
  notices: readonly Notice[],
): HostReport {
  const old = notices.filter((notice) => notice.after < after);
  const dropped = old.slice(0, Math.max(0, old.length - REPEATED));
  const lost = Math.max(-1, ...dropped.map((notice) => notice.after));
  return {
    instances: instances === null ? null : [...instances].sort(),
    notices: notices.filter((notice) => !dropped.includes(notice)),
    completeFrom: Math.max(before.completeFrom, lost + 1),
    after,
  };
}

/** The part of a report that a reader has not seen. */
export interface Unseen {
  readonly notices: readonly Notice[];
  /** Notices may be missing. */
  readonly gap: boolean;
}

/** @param seen sequence of the newest message of this host that the reader has seen; 0: the host had none when it began */
export function unseenNotices(report: HostReport, seen: number): Unseen {
  return { notices: report.notices.filter((notice) => notice.after >= seen), gap: seen < report.completeFrom };
}
