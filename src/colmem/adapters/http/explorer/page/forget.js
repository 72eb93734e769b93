// Forgetting, never without saying what would go and being told to.

import { call } from "./api.js";
import { $, items, openDialog } from "./dom.js";

/** Ask, and forget if told to; gives whether it was done. */
export function confirmForget(target, text, what, yes = "Forget") {
  const dialog = $("forget");
  $("forget-text").textContent = text;
  $("forget-what").textContent = what;
  $("forget-yes").textContent = yes;
  $("forget-yes").disabled = false;
  dialog.returnValue = "";
  openDialog(dialog);
  $("forget-no").focus(); // a slip of the Enter key keeps
  $("forget-no").onclick = () => dialog.close();
  $("forget-yes").onclick = async () => {
    $("forget-yes").disabled = true;
    try {
      const { forgotten } = await call("v1/forget", target);
      dialog.close("done");
      $("done").textContent = `Forgot ${items(forgotten)}.`;
    } catch (error) {
      $("forget-text").textContent = `Nothing is known to be forgotten: ${error.message}`;
      $("forget-yes").disabled = false;
    }
  };
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "done"), { once: true });
  });
}
