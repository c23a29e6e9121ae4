/** What a source, the configuration file or the environment, says of a setting. */
export type GivenSetting = {
  readonly setting: string;
  /** How a fault begins: the variable, or file, line and key. */
  readonly where: string;
  readonly texts: readonly string[];
};

/** What one source says of all settings, and its own faults, each a line. */
export type ConfigSource = { readonly given: readonly GivenSetting[]; readonly faults: readonly string[] };
