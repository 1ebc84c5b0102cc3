import { systemClock } from '@kronos/clock';
import type { Config } from '@kronos/config';
import { openRegions, type RegionReport } from '@kronos/connect';
import { count } from '@kronos/contracts';
import { isLoopback } from '@kronos/telemetry/hosts';
import { type CheckFinding, finding } from './finding.ts';

/** Asks the installations of `[console] regions` as the ledger will: one finding for each. */
export async function checkRegions(config: Pick<Config, 'console'>): Promise<CheckFinding[]> {
  const regions = openRegions(config, systemClock);
  try {
    return (await regions.read()).map(judgeRegion);
  } finally {
    await regions.close();
  }
}

/** Judges a region of the console: whether the console can show it, and whether others can read or change its answers on the way. */
export function judgeRegion({ name, url, seen, problem }: RegionReport): CheckFinding {
  const what = `region ${name}`;
  if (seen === null)
    return finding('warning', 'region', what, {
      text: `the console shows nothing of it: ${problem}`,
      remedy: `In [console] regions, give ${name} the address of the console of a running Kronos, which answers without a login. For a certificate of your own CA, set [console] cafile. If only the ledger can reach the address, run this check there.`,
    });
  const { aggregates, hosts, vms } = seen;
  const found = `answers at ${url}: ${count(aggregates, 'aggregate')}, ${count(hosts, 'host')}, ${count(vms, 'VM')}`;
  const detail = { aggregates, hosts, vms };
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:' || isLoopback(hostname)) return finding('ok', 'region', what, { text: found, detail });
  return finding('warning', 'region', what, {
    text: `${found}; without TLS, so others on the way can read and change it`,
    remedy: 'Give its console a certificate, and write https:// in [console] regions.',
    detail,
  });
}
