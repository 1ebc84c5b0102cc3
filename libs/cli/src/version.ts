import manifest from '../../../package.json' with { type: 'json' };

/** The version of Kronos. */
export const kronosVersion: string = manifest.version;
