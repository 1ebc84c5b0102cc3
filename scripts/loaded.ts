/** The directories of a package that take part in a run: the npm package has them, and with it the Debian package and the images. */
export const LOADED = ['src', 'bin', 'schemas', 'page'];
