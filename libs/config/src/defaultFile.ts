/** Where kronos.conf is when nobody says otherwise. */
export const DEFAULT_CONFIG_FILE = '/etc/kronos/kronos.conf';
