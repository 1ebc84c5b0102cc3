import manifest from '../../../package.json' with { type: 'json' };

/** The version of Kronos. Services and commands have the same. */
export const kronosVersion: string = manifest.version;
