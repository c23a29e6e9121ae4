/** Path parameters that several resources have. */
import Type from "typebox";
import { ID_MAX } from "../../model/limits.ts";

/** An id of any kind; one that is none is not found. */
export const ID_PARAMS = Type.Object({ id: Type.String({ maxLength: ID_MAX }) });
