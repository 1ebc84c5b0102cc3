import type { ActInput, InProcessSim, Scenario } from '@kronos/simcloud';
import type { CloudRecord } from '../checker/checker.ts';
import { actIfPossible } from '../simulatedCloud.ts';

export interface CloudActs {
  /** Null: it cannot be done to the cloud now, and is not done. */
  act(act: ActInput): Readonly<Record<string, unknown>> | null;
  /** A person opts a server out by a tag or a metadata key, or in again. Its other tags and keys stay, such as those with its windows. */
  exclude(server: string, by: 'tag' | 'metadata', yes: boolean): void;
  hosts(): readonly string[];
  /** Hosts that a live migration leaves, or goes to, now. */
  movingHosts(): readonly string[];
  servers(): readonly { readonly id: string; readonly name: string; readonly host: string }[];
  aggregateOf(host: string): string;
}

const EXCLUDE = 'kronos:exclude';

export function cloudActs(sim: InProcessSim, record: CloudRecord, { aggregates }: Scenario): CloudActs {
  const { cloud } = sim;
  return {
    act: (act) => actIfPossible(sim, act),
    exclude(server, by, yes) {
      const found = cloud.servers.get(server);
      if (found === undefined) return;
      const tags = found.tags.filter((tag) => tag !== EXCLUDE);
      const { [EXCLUDE]: _, ...metadata } = found.metadata;
      const change =
        by === 'tag'
          ? { tags: yes ? [...tags, EXCLUDE] : tags }
          : { metadata: yes ? { ...metadata, [EXCLUDE]: 'yes' } : metadata };
      actIfPossible(sim, { act: 'setServer', server, ...change });
    },
    hosts: () => [...cloud.hosts.keys()],
    movingHosts: () => record.running().flatMap(({ source, dest }) => (dest === null ? [source] : [source, dest])),
    servers: () => [...cloud.servers.values()].map(({ uuid, name, host }) => ({ id: uuid, name, host })),
    aggregateOf: (host) => aggregates.find((each) => each.hosts.includes(host))?.name ?? aggregates[0]?.name ?? '',
  };
}
