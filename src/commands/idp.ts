/** Single sign-on: its settings, and signing in with what the identity provider says of a person. */
import type { KeyObject } from "node:crypto";
import { errorText } from "../base/errors.ts";
import {
  effectiveIdp,
  IDP_DOCUMENT,
  type IdpSettings,
  type IdpUpdate,
  idpFaults,
  idpSettingsOf,
  localPath,
  mergeIdp,
  nameForSubject,
  type Person,
  personOf,
} from "../model/idp.ts";
import { IDP_TIMEOUT_SECONDS } from "../model/limits.ts";
import type { UserBody } from "../model/objects.ts";
import { Refusal, refuseFaults } from "../model/refusal.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import { noteWrite } from "./audit-outcome.ts";
import { seal, unseal } from "./idp-attempt.ts";
import { createProvider, type Provider, type ProviderSettings } from "./idp-provider.ts";
import { permitUnconfined } from "./permit.ts";
import { type Actor, type Caller, newId, requireCurrent, runCommand } from "./run.ts";
import { openSession } from "./sessions.ts";
import { failedSignIn, type SignIn } from "./sign-in.ts";
import { deriveKey } from "./tokens.ts";
import { newEpoch, refuseFull } from "./users.ts";

export type Idp = { readonly signIn: SignIn; readonly provider: Provider; readonly sealKey: KeyObject };

/** `timeoutSeconds` is for each request to the provider. */
export function createIdp(signIn: SignIn, timeoutSeconds = IDP_TIMEOUT_SECONDS): Idp {
  const { context, signingKey } = signIn;
  return {
    signIn,
    provider: createProvider(context.now, timeoutSeconds),
    sealKey: deriveKey(signingKey, "sign-in attempt"),
  };
}

export function readIdpSettings(store: Pick<StoreReader, "get">): IdpSettings {
  return idpSettingsOf(store.get("config", [IDP_DOCUMENT])?.body.settings);
}

/** Changes the fields given; null removes. */
export function putIdpSettings({ context }: SignIn, caller: Caller, given: IdpUpdate): Promise<IdpSettings> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write settings");
    const before = tx.get("config", [IDP_DOCUMENT]);
    requireCurrent(caller, before);
    const stored = readIdpSettings(tx);
    const settings = mergeIdp(stored, given);
    refuseFaults(idpFaults(stored, given, settings));
    const isNothing = before === undefined && Object.keys(settings).length === 0;
    const after = isNothing ? undefined : tx.put("config", { name: IDP_DOCUMENT, settings });
    const isChanged = after?.stamp !== before?.stamp;
    tx.note({
      action: "update",
      resource: "config",
      resource_id: IDP_DOCUMENT,
      resource_name: IDP_DOCUMENT,
      ...(isChanged && before !== undefined ? { before: before.body } : {}),
      ...(isChanged ? { after: after?.body } : { result: "unchanged" }),
    });
    return settings;
  });
}

/** The settings to sign in by. Throws `not_found` where single sign-on is not turned on. */
function providerSettings(store: Pick<StoreReader, "get">): ProviderSettings {
  const settings = effectiveIdp(readIdpSettings(store));
  const { enabled, issuer, client_id, redirect_uri } = settings;
  if (!enabled || issuer === undefined || client_id === undefined || redirect_uri === undefined) {
    throw new Refusal("not_found", "single sign-on is not turned on");
  }
  return { ...settings, issuer, client_id, redirect_uri };
}

/** Begins a sign-in: where the browser goes, and the sealed attempt that it has to bring back. Throws `upstream_failed`. */
export async function beginSignOn(
  { signIn, provider, sealKey }: Idp,
  returnTo: string | undefined,
): Promise<{ readonly url: string; readonly sealed: string }> {
  const { store, now, log } = signIn.context;
  const settings = providerSettings(store);
  try {
    const { url, attempt } = await provider.begin(settings);
    return { url, sealed: await seal(sealKey, { ...attempt, returnTo: localPath(returnTo) }, now()) };
  } catch (error) {
    log("warn", "the identity provider could not be asked for a sign-in", { reason: errorText(error) });
    throw new Refusal("upstream_failed", "the identity provider could not be reached, or its answer was not valid");
  }
}

export type SignedOn = { readonly accessToken: string; readonly returnTo: string };

/**
 * Ends a sign-in with the parameters that the browser brought from the provider. Throws `invalid_request` where they
 * belong to no attempt of this browser, `not_authenticated` where the provider refused or the user is disabled,
 * `role_insufficient` where the person has no role here, `upstream_failed` where the provider failed.
 */
export async function finishSignOn(
  { signIn, provider, sealKey }: Idp,
  caller: Caller,
  query: URLSearchParams,
  sealed: string | undefined,
): Promise<SignedOn> {
  const { context, tokens } = signIn;
  const settings = providerSettings(context.store);
  const attempt = sealed === undefined ? undefined : await unseal(sealKey, sealed, context.now());
  if (attempt === undefined || query.get("state") !== attempt.state) {
    throw new Refusal("invalid_request", "this sign-in was not begun in this browser, or too long ago; begin again");
  }
  const outcome = await provider.finish(settings, attempt, query);
  if (outcome.kind === "failed") {
    context.log("warn", "the identity provider failed a sign-in", { reason: outcome.reason });
    const refusal = new Refusal("upstream_failed", "the identity provider's answer was not valid");
    throw await failure(signIn, caller, "", "the identity provider failed", refusal);
  }
  if (outcome.kind === "refused") {
    const detail = `the identity provider refused: ${outcome.reason}`;
    throw await failure(signIn, caller, "", detail, new Refusal("not_authenticated", detail));
  }
  const admitted = personOf(settings, outcome.issuer, outcome.claims);
  if (admitted.kind === "refused") {
    throw await failure(signIn, caller, "", admitted.reason, new Refusal("role_insufficient", admitted.reason));
  }
  const opened = await signOn(signIn, caller, admitted.person);
  if (opened.session === undefined) {
    const refusal = new Refusal("not_authenticated", "the user is disabled");
    throw await failure(signIn, caller, opened.user.username, "the user is disabled", refusal);
  }
  return { accessToken: await tokens.signAccess(opened.user.id, opened.session.id), returnTo: attempt.returnTo };
}

function failure(signIn: SignIn, caller: Caller, username: string, detail: string, refusal: Refusal): Promise<Refusal> {
  return failedSignIn(signIn, caller, { action: "login", resource_id: "", resource_name: username, detail }, refusal);
}

/** Who makes and changes users at a sign-in, as the audit log names it. */
const PROVIDER: Actor = { kind: "system", id: "identity-provider", name: "identity provider", role: "admin" };

/** Makes or updates the person's user and opens a session; none where an administrator disabled the user. */
function signOn(signIn: SignIn, caller: Caller, person: Person) {
  return runCommand(signIn.context, { ...caller, actor: PROVIDER, dryRun: false }, (tx) => {
    const before = userOfPerson(signIn, tx, person);
    if (before !== undefined && !before.body.enabled) return { user: before.body, session: undefined };
    if (before === undefined) refuseFull(tx);
    const { role, subject } = person;
    const user: UserBody =
      before === undefined
        ? {
            id: newId("user"),
            username: freeName(tx, person),
            role,
            enabled: true,
            idp_subject: subject,
            session_epoch: newEpoch(),
          }
        : { ...before.body, role };
    const outcome = { stored: tx.put("user", user), before };
    if (before === undefined || before.body.role !== role) {
      noteWrite(tx, before === undefined ? "create" : "update", outcome, user.username, "by single sign-on");
    }
    const session = openSession(signIn, tx, user, tx.nowMs);
    // Who asks is known only now: the entry is the user's own.
    tx.audit({
      user_id: user.id,
      user_name: user.username,
      source_address: caller.address,
      request_id: caller.requestId,
      action: "login",
      resource: "session",
      resource_id: session.id,
      resource_name: user.username,
      result: "success",
      detail: "by single sign-on",
    });
    return { user, session };
  });
}

/** The person's user: by subject, as the index knows it or, for one made a moment ago, by one of its two names. */
function userOfPerson(
  { usersOfSubject }: SignIn,
  tx: Pick<StoreReader, "byId" | "get">,
  { subject, username }: Person,
): Stored<"user"> | undefined {
  const indexed = usersOfSubject.idsOf(subject).map((id) => tx.byId("user", id));
  const named = [username, nameForSubject(username, subject)].map((name) => tx.get("user", [name]));
  return [...indexed, ...named].find((user) => user?.body.idp_subject === subject);
}

/** The person's own name, or, where somebody else has it, one made of it: nobody takes over another's user by a name. */
function freeName(tx: Pick<StoreReader, "get">, { subject, username }: Person): string {
  const name = [username, nameForSubject(username, subject)].find((one) => tx.get("user", [one]) === undefined);
  if (name === undefined) throw new Refusal("conflict", "the user's name is taken");
  return name;
}
