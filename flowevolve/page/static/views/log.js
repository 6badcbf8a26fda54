// Log: not drawn yet.

export const title = "Log";

export function mount(element, store) {
  function update() {
    element.textContent = `Log of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
