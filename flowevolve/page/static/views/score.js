// Score: not drawn yet.

export const title = "Score";

export function mount(element, store) {
  function update() {
    element.textContent = `Score of ${store.run}`;
  }

  update();
  return { update, unmount() {} };
}
