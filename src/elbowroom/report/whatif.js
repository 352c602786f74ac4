"use strict";
/* What if: sliders for a situation, and what the model predicts for it, computed here from M.json. */
(() => {
const root = $("#what-if");
if (!root) return;
const {files} = JSON.parse($("#models").textContent);
const input = (name) => $(`#what-if-${name}`, root);
const NAMES = {flow: "FLOW", robust: "threshold, robust calibration", threshold: "threshold, the thesis' calibration"};
const SIDES = [["comp", "computation", "right"], ["comm", "communication", "left"]];
const STYLES = ["alone", "together"];
const SVG = "http://www.w3.org/2000/svg";
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/* ---- what is chosenSituation ---- */
const choices = files.flatMap(({name, document}) => Models.names(document).map((model) => ({name, document, model})));
const chosen = () => choices[Number(input("model").value)];
const chosenSituation = () => ({
  comp_node: Number(input("comp-node").value), comm_node: Number(input("comm-node").value),
  n: Number(input("n").value), n_other: Number(input("n-other").value)});
const sizes = ({document}) => {
  const own = document.calibration.size;
  if (Models.whyOneSize(document)) return [own];
  const powers = Array.from({length: 13}, (_, i) => 4 ** (i + 1));
  return [...new Set([...powers, own])].sort((a, b) => a - b);
};
const sizeText = (bytes) => {
  const whole = [[2 ** 30, "GiB"], [1e9, "GB"], [2 ** 20, "MiB"], [1e6, "MB"], [2 ** 10, "KiB"], [1e3, "kB"], [1, "B"]]
    .filter(([factor]) => bytes % factor === 0).map(([factor, unit]) => `${bytes / factor} ${unit}`);
  return whole.reduce((a, b) => (b.length < a.length ? b : a));
};
const size = () => sizes(chosen())[Number(input("size").value)];
const nodeText = (document, node) => {
  const {nic_node: nic, numa_per_socket: each} = document.machine;
  const words = [node < each ? "local to the first socket's cores" : "remote"];
  if (nic !== null && nic !== undefined) words.push(node === nic ? "near the NIC" : "far from the NIC");
  const system = document.calibration.nodes[node];
  return `node ${node}${system === undefined || system === node ? "" : ` (the system's ${system})`}: ${words.join(", ")}`;
};

/* A slider from 0 to `most`; with a `reason` it is disabled and shows it. */
const range = (name, most, value, reason) => {
  const slider = input(name);
  slider.max = most;
  slider.value = value;
  slider.disabled = !!reason || most === 0;
  $(".why", slider.parentElement).textContent = reason;
};
const choose = (keep) => {
  const {document, model} = chosen(), shape = document.machine, nodes = shape.sockets * shape.numa_per_socket;
  const now = keep ? chosenSituation() : {n: shape.cores_first_socket, n_other: 0, comp_node: 0, comm_node: 0};
  range("n", shape.cores_first_socket, Math.min(now.n, shape.cores_first_socket), "");
  const other = shape.sockets < 2 ? "this machine has one socket" : Models.whyOneSocket(model);
  range("n-other", other ? 0 : shape.cores_first_socket, other ? 0 : now.n_other, other);
  for (const [name, node] of [["comp-node", now.comp_node], ["comm-node", now.comm_node]]) {
    range(name, nodes - 1, Math.min(node, nodes - 1), nodes === 1 ? "this machine has one NUMA node" : "");
  }
  const all = sizes(chosen());
  range("size", all.length - 1, all.indexOf(document.calibration.size), Models.whyOneSize(document));
};

/* ---- what is answered ---- */
const say = (name, text) => {
  $("output", input(name).parentElement).textContent = text;
  input(name).setAttribute("aria-valuetext", text);
};
const FLAGS = {
  virtual: "virtual: not a real machine", extrapolated: "extrapolated: outside the measured range",
  repaired: "repaired: differs from the published equations"};
const answer = (prediction) => {
  const body = $("tbody", root);
  body.replaceChildren(...SIDES.map(([side, name]) => {
    const alone = prediction[`${side}_alone`], together = prediction[`${side}_together`], tr = make("tr");
    tr.append(make("th", name));
    for (const one of [alone, together]) {
      const td = make("td", `${number(one.value)} `, "number");
      td.append(make("small", `[${number(one.low)}, ${number(one.high)}]`));
      tr.append(td);
    }
    tr.append(make("td", alone.value > 0 ? number(Math.round(together.value / alone.value * 1000) / 1000) : "–", "number"));
    tr.firstChild.scope = "row";
    return tr;
  }));
  $(".flags", root).replaceChildren(...prediction.flags.map((flag) => make("span", FLAGS[flag] || flag, FLAGS[flag] ? "chip" : "chip quiet")));
};

/* ---- the curves over n, with the situation on them ---- */
const WIDTH = 600, BOX = {left: 66, top: 44, width: 468, height: 230};
const element = (tag, attributes, text) => {
  const created = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  if (text !== undefined) created.textContent = text;
  return created;
};
const step = (span) => {
  const power = 10 ** Math.floor(Math.log10(span / 5));
  return [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= span / 5 * 0.999);
};
const ticks = (most, whole) => {
  const by = whole ? Math.ceil(step(most)) : step(most);
  return Array.from({length: Math.floor(most / by + 1e-9) + 1}, (_, i) => i * by);
};
const scale = (values) => { const top = 1.04 * Math.max(...values, 1e-9); return {top, at: (v) => BOX.top + (1 - v / top) * BOX.height}; };
const path = (spots) => "M" + spots.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
const across = (n, most) => BOX.left + (most ? n / most : 0) * BOX.width;
const axes = (most, scales) => {
  const bottom = BOX.top + BOX.height, end = BOX.left + BOX.width, parts = [];
  const text = (x, y, words, anchor) => element("text", {class: "tick", x, y, "text-anchor": anchor}, words);
  for (const n of ticks(most, true)) parts.push(text(across(n, most), bottom + 18, String(n), "middle"));
  for (const v of ticks(scales.left.top)) {
    const y = scales.left.at(v);
    parts.push(element("path", {class: "grid", d: `M${BOX.left} ${y}H${end}`}), text(BOX.left - 8, y + 4, number(v), "end"));
  }
  for (const v of ticks(scales.right.top)) parts.push(text(end + 8, scales.right.at(v) + 4, number(v), "start"));
  const middle = BOX.top + BOX.height / 2;
  parts.push(
    element("path", {class: "frame", d: `M${BOX.left} ${BOX.top}V${bottom}H${end}V${BOX.top}`}),
    element("text", {class: "axis-label", x: BOX.left + BOX.width / 2, y: bottom + 37, "text-anchor": "middle"}, "Computing cores of the first socket"),
    element("text", {class: "axis-label blue", transform: `translate(14 ${middle})rotate(-90)`, "text-anchor": "middle"}, "Network bandwidth (MB/s)"),
    element("text", {class: "axis-label vermilion", transform: `translate(${WIDTH - 12} ${middle})rotate(90)`, "text-anchor": "middle"}, "Memory bandwidth (MB/s)"));
  return parts;
};
const legend = () => STYLES.flatMap((style, row) => SIDES.map(([, name], column) => {
  const x = BOX.left + column * 230, y = 14 + row * 17;
  const key = element("g", {class: `${column ? "blue" : "vermilion"} ${style}`});
  key.append(element("path", {class: "curve", d: `M${x} ${y - 4}h30`}), element("text", {x: x + 36, y}, `${name} ${style}`));
  return key;
}));
const draw = (curve, n) => {
  const most = curve.length - 1, figure = $("#what-if-figure", root);
  const highs = (side) => curve.flatMap((one) => STYLES.map((style) => one[`${side}_${style}`].high));
  const scales = {left: scale(highs("comm")), right: scale(highs("comp"))};
  const lines = SIDES.flatMap(([side, , axis]) => STYLES.map((style) => {
    const y = scales[axis].at, group = element("g", {class: `${side === "comp" ? "vermilion" : "blue"} ${style}`});
    const spots = (edge) => curve.map((one, i) => [across(i, most), y(one[`${side}_${style}`][edge])]);
    group.append(
      element("path", {class: "band", d: path([...spots("high"), ...spots("low").reverse()]) + "z"}),
      element("path", {class: "curve", d: path(spots("value"))}),
      element("circle", {class: "marker", r: 4.5, cx: across(n, most), cy: y(curve[n][`${side}_${style}`].value)}));
    return group;
  }));
  const here = element("path", {class: "mark", d: `M${across(n, most)} ${BOX.top}v${BOX.height}`});
  figure.replaceChildren(...axes(most, scales), ...legend(), here, ...lines);
};

const update = () => {
  const {document, model} = chosen(), situation = chosenSituation(), {machine} = document;
  say("n", `${count(situation.n, "core")} of ${machine.cores_first_socket}`);
  say("n-other", count(situation.n_other, "core"));
  say("comp-node", nodeText(document, situation.comp_node));
  say("comm-node", nodeText(document, situation.comm_node));
  say("size", sizeText(size()));
  const failed = $(".failed", root), shown = $(".answer", root);
  try {
    const counts = Array.from({length: machine.cores_first_socket + 1}, (_, n) => ({...situation, n}));
    const curve = Models.predict(document, model, counts, size());
    answer(curve[situation.n]);
    draw(curve, situation.n);
    failed.textContent = "";
    shown.hidden = false;
  } catch (error) {
    if (!(error instanceof Models.Unknown)) throw error;
    failed.textContent = `n/a: ${error.message}`;
    shown.hidden = true;
  }
};

let waiting = 0;
const soon = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(update); };
input("model").append(...choices.map(({name, model}, i) => new Option(files.length > 1 ? `${name}: ${NAMES[model]}` : NAMES[model], i)));
input("model").addEventListener("change", () => { choose(true); update(); });
for (const name of ["n", "n-other", "comp-node", "comm-node", "size"]) input(name).addEventListener("input", soon);
/* Cores are chosen on the figure as well. */
$("#what-if-figure", root).addEventListener("pointerdown", (event) => {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(event.currentTarget.getScreenCTM().inverse());
  const most = Number(input("n").max);
  input("n").value = Math.round((at.x - BOX.left) / BOX.width * most);
  update();
});
choose(false);
update();
})();
