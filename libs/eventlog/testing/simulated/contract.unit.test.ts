import { systemClock } from '@kronos/clock';
import { connectEventLog, natsWire } from '../../src/index.ts';
import { jetStreamContract } from '../contract.ts';
import { SimulatedConnection } from './connection.ts';
import { SimulatedServer } from './server.ts';

for (const idsFirst of [true, false])
  jetStreamContract(`simulated, ${idsFirst ? 'message ids' : 'expectations'} first`, 1_000, async () => {
    const server = new SimulatedServer({ clock: systemClock, idsFirst });
    const soon = (act: () => void) => queueMicrotask(act);
    const path = { toServer: soon, toClient: soon, fate: () => 'answered' as const };
    const open = (inboxPrefix: string) => new SimulatedConnection(server, { inboxPrefix }, systemClock, path).nats;
    return {
      connect: (name) =>
        connectEventLog(
          { servers: ['simulated'], name },
          {},
          {
            ...natsWire,
            connect: async ({ inboxPrefix = '_INBOX' }) => open(inboxPrefix),
          },
        ),
      bare: async () => open('_INBOX'),
      stop: async () => undefined,
    };
  });
