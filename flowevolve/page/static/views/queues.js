// Queues: not drawn yet.

export const title = "Queues";

export function mount(element, store) {
  function update() {
    element.textContent = `Queues of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
