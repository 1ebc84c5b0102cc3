import { bareConnection } from '../testing/cluster.ts';
import { jetStreamContract } from '../testing/contract.ts';
import { connectEventLog } from './index.ts';
import { availableServers } from './local/find.ts';
import { startNatsServer } from './local/server.ts';

const { servers } = await availableServers();
for (const found of servers)
  jetStreamContract(`nats-server ${found.version}`, 4_000, async () => {
    const server = await startNatsServer({ server: found });
    return {
      connect: (name) => connectEventLog({ servers: [server.url], name }),
      bare: () => bareConnection(server.url),
      stop: () => server.stop(),
    };
  });
