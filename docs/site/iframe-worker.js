// Browsers start no worker from a page opened as a file. There an iframe runs its script, so that search works.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${new URL(address, location)}"></script>`;
      this.scope = new Promise((resolve) => {
        frame.addEventListener("load", () => {
          const scope = frame.contentWindow;
          scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          resolve(scope);
        });
      });
      document.body.append(frame);
    }

    async postMessage(data) {
      (await this.scope).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
