/**
 * A real OpenID Connect provider (oidc-provider) with its own login and consent pages. A person signs in by subject with
 * any password; PEOPLE_FILE has `{ subject: { name, groups } }` and is read anew for each. REDIRECT_URI is the one client's.
 * Prints its port.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address();

const provider = new Provider(`http://localhost:${port}`, {
  clients: [
    {
      client_id: "signpost",
      client_secret: "the secret of the client",
      redirect_uris: [process.env.REDIRECT_URI],
      response_types: ["code"],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "client_secret_basic",
    },
  ],
  pkce: { required: () => true },
  scopes: ["openid", "profile", "email", "groups"],
  claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
  cookies: { keys: ["of a test"] },
  findAccount: (_context, subject) => ({
    accountId: subject,
    claims: () => {
      const { name, groups } = JSON.parse(readFileSync(process.env.PEOPLE_FILE, "utf8"))[subject];
      const email = `${subject}@corp.test`;
      return { sub: subject, preferred_username: name, email, email_verified: true, groups };
    },
  }),
});
server.on("request", provider.callback());
console.info(`port ${port}`);
