// Signing in: a page at the start, and a dialog over the page after a session has ended.

import { api, Rejected } from "./api.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { changed, state } from "./state.js";
import { button, dialog, failure, field, icon } from "./ui.js";

const form = { token: "", isShown: false, isSending: false, error: null };

async function submit(event, done) {
  event.preventDefault();
  if (form.isSending) return;
  if (form.token.trim() === "") {
    form.error = t("signIn.empty");
    document.getElementById("token")?.focus();
    return changed();
  }
  form.isSending = true;
  form.error = null;
  changed();
  try {
    const session = await api.signIn(form.token);
    form.token = "";
    form.isShown = false;
    await done(session);
  } catch (error) {
    const isTooOften = error instanceof Rejected && error.code === "too_many_attempts";
    form.error = isTooOften ? t("signIn.tooOften", { count: Math.ceil((error.retryAfter ?? 60) / 60) }) : failure(error);
    document.getElementById("token")?.select();
  } finally {
    form.isSending = false;
    changed();
  }
}

function fields(done) {
  return h(
    "form",
    { class: "sign-in", novalidate: true, onsubmit: (event) => submit(event, done) },
    field(
      "token",
      t("signIn.token"),
      h("input", {
        type: form.isShown ? "text" : "password",
        class: "token",
        value: form.token,
        autocomplete: "off",
        autocapitalize: "off",
        spellcheck: "false",
        placeholder: "insp_…",
        maxlength: 128,
        autofocus: true,
        oninput: (event) => {
          form.token = event.target.value;
          form.error = null;
          changed();
        },
      }),
      { error: form.error, hint: t("signIn.hint") },
    ),
    h(
      "label",
      { class: "choice" },
      h("input", {
        type: "checkbox",
        checked: form.isShown,
        onchange: (event) => {
          form.isShown = event.target.checked;
          changed();
        },
      }),
      t("signIn.show"),
    ),
    h(
      "button",
      { type: "submit", class: "primary", "aria-disabled": form.isSending ? "true" : null },
      icon("key"),
      h("span", null, form.isSending ? t("signIn.sending") : t("signIn.do")),
    ),
  );
}

/** The sign-in page. */
export function signInPage(done) {
  return h(
    "main",
    { id: "main", class: "door", tabindex: "-1" },
    h("h1", null, t("signIn.title")),
    h("p", null, state.signIn === "left" ? t("signIn.left") : t("signIn.lead")),
    fields(done),
  );
}

/** The sign-in dialog over the page, which continues afterwards. */
export function signInAgain(done, leave) {
  return dialog(
    "again",
    t("signIn.again"),
    null,
    h("p", null, t("signIn.againLead", { name: state.session.inspector })),
    fields(done),
    button(t("signIn.leave"), leave, { kind: "quiet" }),
  );
}
