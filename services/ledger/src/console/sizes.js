/** Sizes of moves. Pure. */

/** What a move copies, in MiB: the VM's memory and its local disk. */
export const copiedMb = ({ ramMb, diskGb }) => ramMb + diskGb * 1024;
