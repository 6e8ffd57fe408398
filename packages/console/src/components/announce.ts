/** Says a text to screen readers. The region is part of the page from the beginning (`main.tsx`). */
export function announce(text: string): void {
  const region = document.getElementById('announcements')
  if (region) region.textContent = region.textContent === text ? `${text}\u00A0` : text
}
