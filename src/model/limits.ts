/** Every limit of the product's nouns, named once. Each area has its own paragraph. */

/** Faults that one refusal names; more help nobody. */
export const FAULTS_MAX = 50;

/** Users, sessions and tokens. Lengths in characters. */
export const USERNAME_CHARACTERS_MAX = 128;
export const PASSWORD_CHARACTERS_MIN = 16;
export const PASSWORD_CHARACTERS_MAX = 1024;
export const TOKEN_CHARACTERS_MAX = 4096;
export const USERS_MAX = 10_000;
/** Beyond them the one that was used least lately ends. */
export const SESSIONS_PER_USER_MAX = 100;

/** Service accounts. */
export const SERVICE_ACCOUNTS_MAX = 10_000;
export const SERVICE_ACCOUNT_NAME_CHARACTERS_MAX = 128;
export const SERVICE_ACCOUNT_ZONES_MAX = 1_000;
export const SERVICE_ACCOUNT_YEARS_MAX = 10;
export const COMMENT_CHARACTERS_MAX = 1_000;

/** Settings of single sign-on. */
export const IDP_TEXT_CHARACTERS_MAX = 1_000;
export const IDP_ENTRIES_MAX = 100;
