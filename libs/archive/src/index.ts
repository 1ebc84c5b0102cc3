export * from './errors.ts';
export { installationOf, type RawEvent } from './format.ts';
export { type ArchiveReport, readArchive, verifyArchive } from './read.ts';
export { type Archive, openArchive } from './write.ts';
