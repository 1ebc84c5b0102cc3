/** The directory holds an archive of another log. */
export class ArchiveForeign extends Error {
  readonly code = 'KRONOS_ARCHIVE_FOREIGN';
  constructor(dir: string, detail: string) {
    super(
      `the archive in ${dir} is of another event log: ${detail}. Restore it onto the NATS server, or give [ledger] archive_dir an empty directory.`,
    );
    this.name = 'ArchiveForeign';
  }
}
