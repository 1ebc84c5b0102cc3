/** Interval between two looks at whether everything is written, ms. */
const LOOK_MS = 250;

type Output = { readonly writableLength: number };

/** Calls `act` again and again, and keeps no process alive for it. Returns what ends that. */
function everyLook(act: () => void): () => void {
  const timer = setInterval(act, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Ends the process of a command that is over, once its output is written, if something keeps it alive. The NATS client keeps the socket of
 * a connection that it gave up: a server that does not answer would keep the process for minutes, or for ever. Where nothing keeps it, the
 * process has ended before.
 */
export function endWhenWritten(
  end: () => void = () => process.exit(),
  outputs: readonly Output[] = [process.stdout, process.stderr],
  look: typeof everyLook = everyLook,
): void {
  const cancel = look(() => {
    if (outputs.some(({ writableLength }) => writableLength > 0)) return;
    cancel();
    end();
  });
}
