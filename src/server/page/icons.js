// The icons: outlines in a square of 24 units.
const outlines = {
  check: "M5 13l4 4L19 7",
  clip: "M20 11.5l-8 8a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8L10 17a1.7 1.7 0 0 1-2.4-2.4l7.4-7.4",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  cross: "M6 6l12 12M18 6L6 18",
  down: "M12 5v14M6 13l6 6 6-6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  keyboard: "M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M8 15h8",
  left: "M15 6l-6 6 6 6",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
  pencil: "M4 20l1-4L16.5 4.5l3 3L8 19zM14 7l3 3",
  plus: "M12 5v14M5 12h14",
  refresh: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  right: "M9 6l6 6-6 6",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  sidebar: "M4 5h16v14H4zM9.5 5v14",
  sliders: "M4 8h9M17 8h3M4 16h3M11 16h9M15 6v4M9 14v4",
  square: "M7 7h10v10H7z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M19 5l-1.4 1.4M6.4 17.6L5 19",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  up: "M12 19V5M6 11l6-6 6 6",
  upload: "M12 16V5M7 9l5-5 5 5M5 20h14",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", outlines[name]);
  svg.append(path);
  return svg;
}
