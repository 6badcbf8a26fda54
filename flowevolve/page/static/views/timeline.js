// Timeline: not drawn yet.

export const title = "Timeline";

export function mount(element, store) {
  function update() {
    element.textContent = `Timeline of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
