/** Limits of what `control` does for updaters and secondaries. */

/** Updates being carried out; further ones are told SERVFAIL, and clients come again. */
export const UPDATES_MAX = 256;
/** An update of more records than this may be published in slices, and its answer waits for the last of them, but not for ever. */
export const PUBLISHED_AT_ONCE = 100;
export const UPDATE_PUBLISHED_MS = 2_000;
/** Lines about updates that were not carried out, within REFUSED_LINES_MS; those beyond are counted. */
export const REFUSED_LINES_MAX = 20;
export const REFUSED_LINES_MS = 10_000;
/** Keys, or zones, of one page of the store. */
export const KEYS_PAGE = 1_000;
/** One scrape reads many figures of the thread that answers, and asks for them once. */
export const PRIMARY_FIGURES_MS = 500;
/** Zones of so many records are encoded before a secondary asks: smaller ones take no time. */
export const PREPARED_RECORDS_MIN = 2_000;
/** All of them together: about what is kept. */
export const PREPARED_RECORDS_MAX = 2_000_000;
