// SPDX-License-Identifier: GPL-2.0-or-later
// Queues over time that zoom, below those that are drawn. Without this script the page lacks nothing else.
"use strict";
const scheme = matchMedia("(prefers-color-scheme: dark)");
for (const source of document.querySelectorAll("script.course")) {
  const course = JSON.parse(source.textContent);
  const box = document.createElement("div");
  box.className = "zoom";
  source.after(box);
  const draw = () => {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour("grey"), grid: { stroke: colour("rule") }, ticks: { stroke: colour("rule") } };
    const lines = course.lines.map((line) => ({
      label: line.name, stroke: colour(line.colour), dash: line.dash, width: 1.5, points: { show: false },
    }));
    box.replaceChildren();
    new uPlot({
      width: box.clientWidth, height: 260, scales: { x: { time: false } }, axes: [axis, axis],
      series: [{ label: "seconds" }, ...lines],
    }, [course.time, ...course.lines.map((line) => line.mean)], box);
  };
  draw();
  scheme.addEventListener("change", draw);
  addEventListener("resize", draw);
}
