// Applies the chosen theme before the page is drawn; without a choice the system's applies.
(() => {
  const KEY = "wirebroker-theme";
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
  };
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is blocked
    }
  };
  apply(stored());
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-button]")) return;
    const theme = isDark() ? "light" : "dark";
    apply(theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The choice lasts for this page.
    }
  });
})();
