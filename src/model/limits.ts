/** Every limit of the product's nouns, named once. Each area has its own paragraph. */

/** Faults that one refusal names; more help nobody. */
export const FAULTS_MAX = 50;
