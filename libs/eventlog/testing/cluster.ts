import { connect, type NatsConnection } from '@nats-io/transport-node';
import { findNatsServer } from '../src/local/find.ts';
import { freePorts } from '../src/local/ports.ts';
import {
  type ClusterNode,
  LOOPBACK,
  launch,
  type NatsServer,
  type ServerOptions,
  START_MS,
} from '../src/local/server.ts';

export interface NatsCluster {
  readonly servers: readonly NatsServer[];
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

/** Starts a cluster, of as many servers or of one per node, and waits until JetStream has a leader there. */
export async function startNatsCluster(
  size: number | readonly ClusterNode[],
  options: ServerOptions = {},
): Promise<NatsCluster> {
  const found = options.server ?? (await findNatsServer(options.version ?? 'any'));
  const nodes = typeof size === 'number' ? Array.from({ length: size }, () => LOOPBACK) : size;
  const ports = await freePorts(nodes.length * 2);
  const places = nodes.map((node, i) => ({ node, port: ports[i] ?? 0, route: ports[nodes.length + i] ?? 0 }));
  const routes = places.map(({ node, route }) => `nats://${node.address}:${route}`);
  const servers = await Promise.all(
    places.map(({ node, port, route }) =>
      launch(
        {
          found,
          node,
          port,
          name: `kronos-${port}`,
          cluster: `cluster { name: "kronos", listen: "${node.address}:${route}", routes: ${JSON.stringify(routes)} }`,
        },
        options,
      ),
    ),
  );
  const cluster = {
    servers,
    urls: servers.map((server) => server.url),
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
  const until = performance.now() + START_MS;
  const led = (server: NatsServer) => /JetStream cluster (new )?metadata leader/.test(server.logText());
  while (!servers.every(led)) {
    if (performance.now() > until) {
      await cluster.stop();
      throw new Error('the cluster found no leader');
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return cluster;
}

/** A connection to a server that bypasses the library, for tests that look past it. */
export const bareConnection = (
  url: string,
  login: { readonly user?: string; readonly pass?: string } = {},
): Promise<NatsConnection> => connect({ servers: url, ...login });
