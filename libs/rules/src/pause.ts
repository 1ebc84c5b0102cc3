/** Pauses of one aggregate and of all of them. Pure. */

type Pausable<P> = { readonly paused: { readonly here: P | null; readonly everywhere: P | null } };

/** The pause that holds for an aggregate; null: none. */
export const pauseInForce = <P>({ paused }: Pausable<P>): P | null => paused.here ?? paused.everywhere;
