// The reader's choice of colours, before anything is drawn. A page in a folder may have no place to remember it.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {}
