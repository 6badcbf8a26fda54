// Examples: not drawn yet.

export const title = "Examples";

export function mount(element, store) {
  function update() {
    element.textContent = `Examples of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
