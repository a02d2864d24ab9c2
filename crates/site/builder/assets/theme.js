// Applies the chosen theme before the first paint. Pages in a folder may have no storage.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {}
