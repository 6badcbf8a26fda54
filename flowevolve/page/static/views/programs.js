// Programs: not drawn yet.

export const title = "Programs";

export function mount(element, store) {
  function update() {
    element.textContent = `Programs of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
