// On a narrow screen, figures with panels side by side scroll and keep their labels
// legible: skawhmm.css. Thumbnails stay small.
const mark = (image) => {
  const wide = image.naturalWidth > 1.7 * image.naturalHeight;
  if (!wide || image.closest(".sphx-glr-thumbnails, .scrolled")) return;
  const shown = image.closest("a") ?? image;
  const box = document.createElement("span");
  box.className = "scrolled";
  shown.replaceWith(box);
  box.append(shown);
};

addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll(".bd-article img")) {
    if (image.complete) mark(image);
    else image.addEventListener("load", () => mark(image));
  }
});
