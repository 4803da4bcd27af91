// Makes the box it stands in usable by keyboard and by screen reader inside JupyterLab.
//
// JupyterLab listens for keys on the whole page: with the focus on a radio button, x would cut the cell and
// an arrow would leave it. Keys pressed inside the box end here, except those that mean the notebook or the browser.

const BOX = ".starvelab-box";
const FOR_THE_NOTEBOOK = new Set(["Tab", "Escape"]);

function isForTheNotebook(event) {
  return (
    FOR_THE_NOTEBOOK.has(event.key) ||
    event.ctrlKey ||
    event.altKey ||
    event.metaKey ||
    (event.key === "Enter" && event.shiftKey)
  );
}

function keepKey(event) {
  if (!isForTheNotebook(event)) event.stopPropagation();
}

// Enter in a text field goes on to how sure one is: it shall not lock what cannot be changed any more.
function goOn(event) {
  if (event.key === "Enter" && !isForTheNotebook(event) && event.target.matches("input[type=text]")) {
    event.currentTarget.querySelector("[role=slider]")?.focus();
  }
  // JupyterLab takes nobody out of a widget: arrows would go on to move a slider, and not to the next cell.
  if (event.key === "Escape") event.currentTarget.closest(".jp-Cell")?.focus();
}

// ipywidgets gives each radio button a group of its own, so that arrows do nothing. One shared name mends that.
// A counter would not keep names apart: every widget loads its own copy of this script.
function joinRadios(box, question) {
  for (const group of box.querySelectorAll(".widget-radio-box:not([role])")) {
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-label", question);
    group.dataset.starvelabName = `starvelab-radio-${Math.random().toString(36).slice(2)}`;
  }
  for (const radio of box.querySelectorAll("[data-starvelab-name] input[type=radio]:not([name])")) {
    radio.name = radio.closest("[data-starvelab-name]").dataset.starvelabName;
  }
}

// A slider's handle carries its role but neither its name nor, for a list of values, the value that is chosen.
function nameSliders(box) {
  for (const slider of box.querySelectorAll(".widget-slider")) {
    const handle = slider.querySelector("[role=slider]");
    if (!handle) continue;
    const name = slider.querySelector(".widget-label")?.textContent ?? "";
    const readout = slider.querySelector(".widget-readout");
    set(handle, "aria-label", name);
    if (!readout) continue;
    set(handle, "aria-valuetext", readout.textContent);
    if (slider.classList.contains("starvelab-listed")) {
      // The read-out of a list of values takes no typing: it need not be a stop on the way through the page.
      set(readout, "contenteditable", "false");
    } else {
      set(readout, "role", "textbox");
      set(readout, "aria-label", `${name}, as a number`);
    }
    set(handle, "aria-disabled", String(slider.querySelector("[disabled]") !== null));
  }
}

function nameToggles(box) {
  for (const group of box.querySelectorAll(".widget-toggle-buttons")) {
    set(group, "role", "group");
    set(group, "aria-label", group.querySelector(".widget-label")?.textContent ?? "");
    for (const button of group.querySelectorAll("button")) {
      set(button, "aria-pressed", String(button.classList.contains("mod-active")));
    }
  }
}

function set(node, attribute, value) {
  if (node.getAttribute(attribute) !== value) node.setAttribute(attribute, value);
}

// The page sends what it held back while the kernel worked before it sends this answer (Box.after_changes).
function initialize({ model }) {
  model.on("msg:custom", () => model.send({}));
  model.set("answers", true);
  model.save_changes();
}

function render({ model, el }) {
  let box = null;
  let frame = 0;
  let tableOpen = false;
  let lastFocused = null;

  const dress = () => {
    set(box, "role", "group");
    set(box, "aria-label", model.get("name"));
    joinRadios(box, model.get("name"));
    nameSliders(box);
    nameToggles(box);
    for (const spoken of box.querySelectorAll(".starvelab-spoken")) set(spoken, "aria-live", "polite");
    for (const details of box.querySelectorAll("details")) details.open = tableOpen;
    keepPlace();
  };
  // A button that locks disables itself, and the page would forget where its user was. The box takes the focus.
  const keepPlace = () => {
    if (!lastFocused?.disabled) return;
    if (document.activeElement === lastFocused || document.activeElement === document.body) {
      box.tabIndex = -1;
      box.focus({ preventScroll: true });
    }
    lastFocused = null;
  };
  const note = (event) => {
    lastFocused = event.target;
  };
  // A moving picture changes sixty times a second and names its own parts.
  const observer = new MutationObserver((changes) => {
    if (changes.some(({ target }) => !target.closest?.(".sl-moving"))) dress();
  });
  // The table under a picture is replaced whenever the picture is. It stays open if the reader opened it.
  const remember = (event) => {
    if (event.target.isConnected) tableOpen = event.target.open;
  };
  // Enter on it is a click, too. The picture may be drawn again before the page hears of the toggle.
  const press = (event) => {
    const table = event.target.closest("summary")?.parentElement;
    if (table) tableOpen = !table.open;
  };

  const attach = () => {
    box = el.closest(BOX);
    if (box === null) {
      frame = requestAnimationFrame(attach);
      return;
    }
    box.addEventListener("keydown", keepKey);
    // Before ipywidgets, whose text field lets no key out.
    box.addEventListener("keydown", goOn, true);
    box.addEventListener("focusin", note);
    box.addEventListener("click", press);
    box.addEventListener("toggle", remember, true);
    observer.observe(box, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ["aria-valuetext", "class", "disabled"],
    });
    dress();
  };
  attach();

  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    box?.removeEventListener("keydown", keepKey);
    box?.removeEventListener("keydown", goOn, true);
    box?.removeEventListener("focusin", note);
    box?.removeEventListener("click", press);
    box?.removeEventListener("toggle", remember, true);
  };
}

export default { initialize, render };
