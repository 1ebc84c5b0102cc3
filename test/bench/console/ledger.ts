/** The ledger of `bench:console`, in a process of its own: the CPU and the memory of the bench are not its. */
import { connectEventLog } from '@kronos/eventlog';
import { testLedger } from '@kronos/ledger/testing';
import { cpuMs } from '../cpuTime.ts';

/** Messages of the ledger's process: first that it serves, then its usage at each request. */
export type Said =
  | { readonly url: string; readonly startCpuMs: number }
  | { readonly cpuMs: number; readonly heapMb: number; readonly rssMb: number };
/** Requests its usage, after a garbage collection or without one. */
export type Asked = 'usage' | 'collected';

const [server = '', ...scope] = process.argv.slice(2);
const say = (said: Said): void => void process.send?.(said);

const log = await connectEventLog({ servers: [server], name: 'ledger' });
const ledger = await testLedger(log, { scope });
await ledger.warm;
process.on('message', (asked: Asked) => {
  if (asked === 'collected') globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  say({ cpuMs: cpuMs(), heapMb: heapUsed / 1024 ** 2, rssMb: rss / 1024 ** 2 });
});
process.once('disconnect', () => void ledger.stop().then(() => process.exit()));
say({ url: ledger.url, startCpuMs: cpuMs() });
