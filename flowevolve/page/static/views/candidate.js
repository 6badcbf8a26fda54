// Candidate: not drawn yet.

export const title = "Candidate";

export function mount(element, store) {
  function update() {
    element.textContent = `Candidate of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
