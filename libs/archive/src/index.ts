export * from './errors.ts';
export { type ArchivedEvent, installationOf } from './format.ts';
export { type ArchiveReport, readArchive, verifyArchive } from './read.ts';
export { type Archive, openArchive } from './write.ts';
