import type { ApiInput, Costly } from './input.ts';
import type { Lookups } from './lookups.ts';
import type { Reads } from './reads.ts';
import type { runbookReader } from './runbook.ts';
import type { ApiAnswer, Operation } from './schemas.ts';

/** A request: the placeholders of its path, and its query. */
export type EndpointCall = { readonly params: Readonly<Record<string, string>>; readonly query: URLSearchParams };
export type Handlers = { readonly [O in Operation]: (asked: EndpointCall) => ApiAnswer<O> | Promise<ApiAnswer<O>> };

/** The shared context of the endpoints' handlers. */
export type ApiContext = {
  readonly input: ApiInput;
  readonly lookups: Lookups;
  readonly reads: Reads;
  readonly runbook: ReturnType<typeof runbookReader>;
  /** Limits of concurrent requests: that read from the log, that make a decision again, and that run a what-if. */
  readonly limits: { readonly reading: Costly; readonly explaining: Costly; readonly simulating: Costly };
};
