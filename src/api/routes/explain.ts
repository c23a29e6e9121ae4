/** /explain: why a client gets the answer that it gets. */
import Type from "typebox";
import { type Explainer, questionFromText } from "../../commands/explain.ts";
import { EXPLAINED_TYPES, ExplanationShape } from "../../model/explanation.ts";
import { NAME_TEXT_MAX } from "../../model/limits.ts";
import { type Route, route } from "../route.ts";

/** The longest IPv6 address with an IPv4 one at its end. */
const ADDRESS_TEXT_MAX = 45;

const EXPLAIN_QUERY = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: NAME_TEXT_MAX,
    description: "The whole name, with or without its last dot.",
    examples: ["www.corp.example."],
  }),
  type: Type.Optional(Type.Enum([...EXPLAINED_TYPES], { default: "A" })),
  client: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: ADDRESS_TEXT_MAX,
      description: "Address of the client that would ask; left out: that of this request.",
      examples: ["192.0.2.77"],
    }),
  ),
});

/** The route of explanations. */
export function explainRoutes(explain: Explainer): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/explain",
      summary: "Explain the answer that a client would get from this node now",
      tag: "explain",
      access: "readonly",
      query: EXPLAIN_QUERY,
      response: ExplanationShape,
      handle: async ({ query, caller }) => ({ body: await explain(questionFromText(query, caller.address)) }),
    }),
  ];
}
