// Staleness: not drawn yet.

export const title = "Staleness";

export function mount(element, store) {
  function update() {
    element.textContent = `Staleness of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
