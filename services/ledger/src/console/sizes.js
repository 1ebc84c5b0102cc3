/** Sizes of moves. Pure. */

/** The MiB that a move copies: the VM's memory and its local disk. */
export const copiedMb = ({ ramMb, diskGb }) => ramMb + diskGb * 1024;
