// What a page needs beside htmx: copying text, and numbers that follow a slider.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).innerText;
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
});
// A slider and a number that say the same: the slider's scale is logarithmic.
document.addEventListener("input", (event) => {
  const from = event.target;
  if (from.dataset.slides) {
    const value = Math.pow(10, parseFloat(from.value));
    document.getElementById(from.dataset.slides).value = Number(value.toPrecision(2));
  } else if (from.dataset.slider && parseFloat(from.value) > 0) {
    document.getElementById(from.dataset.slider).value = Math.log10(parseFloat(from.value));
  }
});
// Fields that belong to one kind of request only.
function showFields() {
  const kind = document.querySelector("select[name=kind]");
  if (!kind) return;
  for (const field of document.querySelectorAll("[data-kinds]")) {
    field.hidden = !field.dataset.kinds.split(" ").includes(kind.value);
    // What belongs to another kind is neither sent nor checked.
    for (const each of field.querySelectorAll("input, select, textarea")) each.disabled = field.hidden;
  }
}
document.addEventListener("change", showFields);
document.addEventListener("DOMContentLoaded", showFields);
// A number outside of what was declared is marked where it was typed.
document.addEventListener("input", (event) => {
  const field = event.target;
  if (!field.closest("form[data-person]") || field.type !== "number") return;
  const value = parseFloat(field.value);
  const inside = !(value < parseFloat(field.min)) && !(value > parseFloat(field.max));
  if (inside) field.removeAttribute("aria-invalid");
  else field.setAttribute("aria-invalid", "true");
});
// Declaring bounds: a template fills a range, and fields of a range give way to those of levels.
document.addEventListener("change", (event) => {
  const field = event.target;
  if (field.dataset.template) {
    const chosen = field.selectedOptions[0].dataset;
    for (const part of ["low", "high", "unit"]) {
      if (chosen[part] !== undefined) document.getElementById(`${field.dataset.template}-${part}`).value = chosen[part];
    }
  }
  if (field.dataset.kindOfBounds !== undefined) {
    for (const part of field.closest("[data-declare]").querySelectorAll("[data-when]")) {
      part.hidden = part.dataset.when !== field.value;
    }
  }
});
