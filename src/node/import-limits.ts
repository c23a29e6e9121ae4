/** What the thread of imports may take. */

/** Heap of the thread; an import that needs more is refused, and nothing else notices. */
export const IMPORT_HEAP_MB = 1_024;
/** Reading one body: the largest takes a few seconds. */
export const IMPORT_READ_MS = 60_000;
/** Imports that wait for the one before them, their bodies in memory. */
export const IMPORTS_WAITING_MAX = 8;
/** The thread ends when nobody has imported for so long, and its memory with it. */
export const IMPORT_IDLE_MS = 30_000;
