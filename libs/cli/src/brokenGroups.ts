import type { EngineOptions, Snapshot } from '@kronos/contracts';

/** The hard server groups of a snapshot that are broken, where the planner does not repair them and so says nothing of them. */
export function brokenGroups(
  snapshot: Pick<Snapshot, 'notes'>,
  { enforceHardAffinity }: Pick<EngineOptions, 'enforceHardAffinity'>,
): { readonly brokenGroups?: string } {
  const note = snapshot.notes.find(({ code }) => code === 'group-broken');
  return note === undefined || enforceHardAffinity ? {} : { brokenGroups: note.text };
}
