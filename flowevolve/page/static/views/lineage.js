// Lineage: not drawn yet.

export const title = "Lineage";

export function mount(element, store) {
  function update() {
    element.textContent = `Lineage of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
