import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const bed = fileURLToPath(new URL('bed', import.meta.url));

async function answers(): Promise<boolean> {
  try {
    return (await fetch('http://127.0.0.1:18774/')).ok;
  } catch {
    return false;
  }
}

function tell(word: string): void {
  const done = spawnSync(bed, [word], {
    stdio: ['ignore', 2, 2],
    env: { BED_CELL2_COMPUTES: '1', ...process.env },
  });
  if (done.status !== 0)
    throw new Error(
      `test/openstack/bed ${word} failed${process.getuid?.() === 0 ? '' : ': it needs root'}; its output is above`,
    );
}

/** Uses the cloud that is up, and leaves it so; else starts one and ends it afterwards. */
export async function setup(): Promise<(() => void) | undefined> {
  if (await answers()) return undefined;
  tell('up');
  return () => tell('down');
}
