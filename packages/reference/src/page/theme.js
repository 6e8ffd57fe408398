document.documentElement.classList.add('scripted')
try {
  const theme = localStorage.getItem('theme')
  if (theme) document.documentElement.dataset.theme = theme
} catch {
  // The browser keeps nothing for this page.
}
