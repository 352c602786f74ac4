"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
document.documentElement.classList.add("scripted");
/* ---- reading rows out of the columns ---- */
const word = (name, row) => data.words[name].labels[data.words[name].at[row]];
const cell = (column, row) => (Array.isArray(column) ? column[row] : column);
const unit = (summary, row) => cell(summary.unit, row);
const median = (side, state) => (row) => data.sides[side][state].median[row];
const shown = (side, state) => (row) => {
  const summary = data.sides[side][state];
  return summary.median[row] === null ? "–" : `${number(summary.median[row])} ${unit(summary, row)}`;
};
/* One sample (an imported value) has no interval. */
const single = (summary, row) => cell(summary.count, row) === 1;
const keptText = (side) => (row) => {
  const kept = data.sides[side].kept;
  if (kept.value[row] !== null && single(data.sides[side].alone, row)) return kept.value[row].toFixed(2);
  return interval(kept.value[row], kept.low[row], kept.high[row]);
};
const wordColumn = (name, title = name) =>
  ({title, key: (row) => data.words[name].at[row], text: (row) => word(name, row)});
const numberColumn = (name, title, group) =>
  ({title, group, number: true, key: (row) => data.numbers[name][row], text: (row) => String(data.numbers[name][row])});
const placement = (row) => {
  const {comp_node: comp, comm_node: comm, comm_core: core} = data.numbers;
  return `comp ${comp[row]} · comm ${comm[row]} · core ${core[row] < 0 ? "unknown" : core[row]}`;
};
const sideColumns = (side) => [
  {title: "alone", group: side, number: true, key: median(side, "alone"), text: shown(side, "alone")},
  {title: "together", group: side, number: true, key: median(side, "together"), text: shown(side, "together")},
  {title: "kept", group: side, number: true, key: (row) => data.sides[side].kept.value[row], text: keptText(side),
   low: (row) => data.sides[side].kept.high[row] !== null && data.sides[side].kept.high[row] < 1}];
/* Columns with one value in all rows are shown once, above the table. */
const varies = (column) => {
  const first = data.count ? column.key(0) : null;
  for (let row = 1; row < data.count; row++) if (column.key(row) !== first) return true;
  return false;
};
const places = [
  wordColumn("status"), wordColumn("metric"), wordColumn("variant"),
  numberColumn("comp_node", "comp", "placement"), numberColumn("comm_node", "comm", "placement"), numberColumn("comm_core", "core", "placement")];
const flags = wordColumn("flags");
const columns = [
  wordColumn("kernel"), numberColumn("n", "n"), wordColumn("size"),
  ...places.filter(varies), ...sideColumns("comp"), ...sideColumns("comm"), ...[flags].filter(varies)];
const constant = [...places, flags].filter((column) => !varies(column) && data.count && column.text(0));
const GROUPS = {placement: "placement", comp: "computation", comm: "communication"};
const CONSTANT = {status: "status", flags: "flags", metric: "metric", variant: "", comp: "computation's data on NUMA node", comm: "messages on NUMA node", core: "communication core"};
$("#constant").textContent = constant.length
  ? "All points: " + constant.map((column) => `${CONSTANT[column.title]} ${column.text(0)}`.trim()).join(", ") + "." : "";

/* ---- which cores a row used ---- */
const expand = (text) => {
  const cores = new Set();
  for (const part of text ? text.split(",") : []) {
    const [first, last] = part.split("-").map(Number);
    for (let core = first; core <= (last ?? first); core++) cores.add(core);
  }
  return cores;
};
const sets = data.uses.sets.map((set) => ({comp: expand(set.comp), comm: expand(set.comm), peer: expand(set.peer)}));
const usesCore = (core) => {
  const hit = sets.map((set) => set.comp.has(core) || set.comm.has(core) || set.peer.has(core));
  return (row) => data.uses.at[row] >= 0 && hit[data.uses.at[row]];
};
const usesNode = (node) => (row) => data.numbers.comp_node[row] === node || data.numbers.comm_node[row] === node;

/* ---- the table: only the rows in sight are in the document ---- */
const ROW = 30, SPARE = 8, PRINTED = 500;
const box = $("#table-box"), table = $("#table"), head = table.tHead, body = table.tBodies[0];
const view = {rows: [], column: null, down: false, text: "", only: null, onlyName: "", chosen: -1, from: -1, to: -1};

/* No cell is cut: a column is as wide as its longest text, and the table scrolls in its box where all do not fit. */
const pen = document.createElement("canvas").getContext("2d");
const widthOf = (column) => {
  pen.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
  const texts = new Set([`${column.title} ▼`]);
  for (let row = 0; row < data.count; row++) texts.add(column.text(row));
  let longest = 0;
  for (const text of texts) if (text.length * 14 > longest) longest = Math.max(longest, pen.measureText(text).width);
  return Math.ceil(longest) + 14;
};
const drawHead = () => {
  const group = make("tr"), names = make("tr");
  columns.forEach((column, index) => {
    const th = make("th");
    th.scope = "col";
    if (column.number) th.className = "number";
    const button = make("button", column.title);
    button.type = "button";
    const group = GROUPS[column.group] ? GROUPS[column.group] + " " : "";
    button.setAttribute("aria-label", `sort by ${group}${column.title}`);
    button.addEventListener("click", () => sortBy(index));
    th.append(button);
    names.append(th);
  });
  columns.forEach((column, index) => {
    if (index && column.group === columns[index - 1].group) return group.lastChild.colSpan++;
    group.append(make("th", GROUPS[column.group] || "", `group ${column.group || ""}-group`));
  });
  const widths = make("colgroup");
  const wide = columns.map(widthOf), total = wide.reduce((sum, width) => sum + width, 0);
  for (const width of wide) { const col = make("col"); col.style.width = `${100 * width / total}%`; widths.append(col); }
  table.style.minWidth = `${total}px`;
  table.prepend(widths);
  head.append(group, names);
};
const drawRow = (row, index) => {
  const tr = make("tr");
  tr.dataset.row = row;
  tr.setAttribute("aria-rowindex", index + 3);
  tr.tabIndex = -1;
  if (row === view.chosen) tr.className = "chosen";
  for (const column of columns) {
    const text = column.text(row);
    const td = make("td", text, column.number ? "number" : "");
    if (column.low && column.low(row)) td.classList.add("low");
    tr.append(td);
  }
  return tr;
};
const space = (count) => {
  const tr = make("tr", undefined, "space"), td = make("td");
  td.colSpan = columns.length;
  td.style.height = `${count * ROW}px`;
  tr.setAttribute("aria-hidden", "true");
  tr.append(td);
  return tr;
};
const drawRows = (from, to) => {
  view.from = from;
  view.to = to;
  const rows = view.rows.slice(from, to).map((row, offset) => drawRow(row, from + offset));
  body.replaceChildren(...(from ? [space(from)] : []), ...rows, ...(to < view.rows.length ? [space(view.rows.length - to)] : []));
  table.setAttribute("aria-rowcount", view.rows.length + 2);
};
const refresh = (force) => {
  const from = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE);
  const to = Math.min(view.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + SPARE);
  if (force || from !== view.from || to !== view.to) drawRows(from, to);
};

let haystacks = null;
const searchable = () => haystacks ??= Array.from({length: data.count}, (_, row) =>
  [...["kernel", "size", "metric", "variant", "status", "flags", "reason"].map((name) => word(name, row)),
   word("size", row).replace(" ", ""), `n=${data.numbers.n[row]}`, placement(row)].join(" ").toLowerCase());
const apply = () => {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  let rows = Array.from({length: data.count}, (_, row) => row);
  if (view.only) rows = rows.filter(view.only);
  if (words.length) { const texts = searchable(); rows = rows.filter((row) => words.every((one) => texts[row].includes(one))); }
  if (view.column !== null) {
    const {key} = columns[view.column], sign = view.down ? -1 : 1;
    // Rows without a value stay last in both directions; equal ones keep the order of measuring.
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (x - y) || a - b;
    });
  }
  view.rows = rows;
  const all = rows.length === data.count;
  $("#shown").textContent = (all ? `${data.count} points` : `${rows.length} of ${data.count} points`) + (view.onlyName ? `, ${view.onlyName}` : "");
  $("#clear").hidden = all && !view.text && !view.only;
  box.scrollTop = 0;
  refresh(true);
  // The box has grown to its height with these first rows: now as many as it can show.
  refresh(false);
};
const sortBy = (index) => {
  if (view.column === index && view.down) { view.column = null; view.down = false; }
  else { view.down = view.column === index; view.column = index; }
  [...head.rows[1].cells].forEach((th, i) => {
    const on = i === view.column;
    on ? th.setAttribute("aria-sort", view.down ? "descending" : "ascending") : th.removeAttribute("aria-sort");
    $("button", th).textContent = columns[i].title + (on ? (view.down ? " ▼" : " ▲") : "");
  });
  apply();
};
const only = (test, name) => { view.only = test; view.onlyName = name; apply(); };

/* ---- one point ---- */
const NAMES = {comp: "computation", comm: "communication"};
const showPoint = (row, scroll) => {
  view.chosen = row;
  const panel = $("#point-details"), set = data.uses.sets[data.uses.at[row]];
  const about = [
    ["computation's data", `NUMA node ${data.numbers.comp_node[row]}`], ["messages", `NUMA node ${data.numbers.comm_node[row]}`],
    ["communication thread", `core ${data.numbers.comm_core[row]}`], ["metric", word("metric", row)], ["status", word("status", row)]];
  if (word("variant", row)) about.push(["variant", word("variant", row)]);
  if (set) about.push(["computing cores", set.comp || "none"], ["communication cores", set.comm || "none"]);
  if (set && set.peer) about.push(["peer's cores", set.peer]);
  if (word("reason", row)) about.push(["reason", word("reason", row)]);
  for (const flag of word("flags", row).split(" ").filter(Boolean)) about.push([flag, data.flagMeanings[flag.split(":")[0]]]);
  const wide = make("div", undefined, "wide"), grid = make("table"), top = grid.createTHead().insertRow();
  for (const title of ["", "", "median", "d1 – d9", "95 % interval", "samples", "kept"]) top.append(make("th", title));
  const rows = grid.createTBody();
  for (const side of ["comp", "comm"]) for (const state of ["alone", "together"]) {
    const summary = data.sides[side][state], tr = rows.insertRow(), at = (name) => number(cell(summary[name], row));
    const there = summary.median[row] !== null;
    const spread = single(summary, row) ? ["", ""] : [`${at("d1")} – ${at("d9")}`, `[${at("low")}, ${at("high")}]`];
    const cells = there ? [shown(side, state)(row), ...spread, at("count")] : ["not measured", "", "", ""];
    for (const text of [NAMES[side], state, ...cells, state === "together" ? keptText(side)(row) : ""]) tr.append(make("td", text));
  }
  wide.append(grid);
  panel.replaceChildren(make("h3", `${word("kernel", row)}, n = ${data.numbers.n[row]}, ${word("size", row)}`), wide, pairs(about));
  panel.hidden = false;
  paintCores(data.uses.at[row] >= 0 ? sets[data.uses.at[row]] : null);
  refresh(true);
  if (scroll) {
    const index = view.rows.indexOf(row);
    if (index >= 0) { box.scrollTop = Math.max(0, index * ROW - box.clientHeight / 2); refresh(true); }
    panel.scrollIntoView({block: "nearest"});
  }
};
const leavePoint = () => {
  view.chosen = -1;
  $("#point-details").hidden = true;
  paintCores(null);
  refresh(true);
};
body.addEventListener("click", (event) => {
  const tr = event.target.closest("tr[data-row]");
  if (!tr) return;
  if (Number(tr.dataset.row) === view.chosen) leavePoint();
  else showPoint(Number(tr.dataset.row), false);
});
box.addEventListener("keydown", (event) => {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (!step || event.target.tagName === "BUTTON" || !view.rows.length) return;
  event.preventDefault();
  const at = view.rows.indexOf(view.chosen), next = Math.min(view.rows.length - 1, Math.max(0, at < 0 ? 0 : at + step));
  const top = next * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + 3 * ROW + 30 > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * ROW + 30 - box.clientHeight;
  showPoint(view.rows[next], false);
});

/* ---- the machine ---- */
const cores = $$(".core");
const original = cores.map((core) => core.getAttribute("class"));
const paintCores = (set) => {
  $$(".packages .package").forEach((svg) => svg.classList.toggle("picking", !!set));
  cores.forEach((core, index) => {
    if (!set) return core.setAttribute("class", original[index]);
    const name = Number(core.dataset.core);
    const roles = ["comp", "comm", "peer"].filter((role) => set[role].has(name));
    core.setAttribute("class", ["core", ...roles, ...(roles.length ? ["live"] : []), ...(original[index].includes("outside") ? ["outside"] : [])].join(" "));
  });
};
const pick = (element) => {
  paintCores(null);
  $$(".package .chosen").forEach((other) => other.classList.remove("chosen"));
  element.classList.add("chosen");
  const {core, node, nic} = element.dataset, panel = $("#machine-details");
  const facts = core !== undefined ? data.machine.cores[core] : node !== undefined ? data.machine.nodes[node] : data.machine.nics[nic];
  const title = core !== undefined ? `Core ${core}` : node !== undefined ? `NUMA node ${node}` : `Network card ${nic}`;
  panel.replaceChildren(make("h3", title), pairs(facts));
  if (nic !== undefined) return;
  const test = core !== undefined ? usesCore(Number(core)) : usesNode(Number(node));
  let count = 0;
  for (let row = 0; row < data.count; row++) if (test(row)) count++;
  const what = core !== undefined ? "use this core" : "have data on this node";
  panel.append(make("p", `${count} of ${data.count} points ${what}; the table shows ${count ? "only these" : "none"}.`));
  only(test, core !== undefined ? `filtered by core ${core}` : `filtered by node ${node}`);
  const jump = make("button", "go to the table");
  jump.type = "button";
  jump.addEventListener("click", () => $("#points").scrollIntoView());
  const back = make("button", "show all points");
  back.type = "button";
  back.addEventListener("click", clear);
  panel.append(jump, " ", back);
};
const clear = () => {
  view.text = $("#filter").value = "";
  paintCores(null);
  $$(".package .chosen").forEach((other) => other.classList.remove("chosen"));
  only(null, "");
};
const packages = $(".packages");
packages.addEventListener("click", (event) => { const hit = event.target.closest("[role=button]"); if (hit) pick(hit); });
packages.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  const hit = event.target.closest("[role=button]");
  if (hit) { event.preventDefault(); pick(hit); }
});

/* ---- values on a figure: the vertex nearest to the pointer, or the arrow keys ---- */
const tip = $("#tip");
const vertices = new WeakMap();
/* The vertices of a path made of `M x y l dx dy ...`; `h0` stands for a lone point. */
const corners = (path) => path.split("M").slice(1).flatMap((run) => {
  const [start, steps = ""] = run.split(/[lh]/);
  let [x, y] = start.split(" ").map(Number);
  const moves = run.includes("l") ? steps.match(/-?(\d+\.?\d*|\.\d+)/g).map(Number) : [];
  const spots = [[x, y]];
  for (let i = 0; i < moves.length; i += 2) spots.push([x += moves[i], y += moves[i + 1]]);
  return spots;
});
const read = (svg) => {
  if (vertices.has(svg)) return vertices.get(svg);
  const list = [];
  $$(".series", svg).forEach((series) => {
    const split = (name) => (series.dataset[name] ? series.dataset[name].split("|") : []);
    const facts = {x: series.dataset.x ? split("x") : svg.dataset.x.split("|"), median: split("median"), d1: split("d1"), d9: split("d9"), rows: [...expand(series.dataset.rows)]};
    corners($(".curve", series).getAttribute("d")).forEach(([x, y], i) => list.push({series, facts, i, x, y}));
  });
  vertices.set(svg, list);
  return list;
};
const describe = (svg, spot) => {
  const {series, facts, i} = spot, units = series.dataset.unit ? ` ${series.dataset.unit}` : "";
  const {side, style: state} = series.dataset, row = facts.rows.length ? facts.rows[i] : -1;
  const value = (name) => (facts.median.length ? facts[name][i] : number(data.sides[side][state][name][row]));
  const list = [[svg.dataset.xLabel, facts.x[i]], [series.dataset.value || "median", value("median") + units]];
  if (facts.d1.length || !facts.median.length) list.push([series.dataset.band || "d1 – d9", `${value("d1")} – ${value("d9")}${units}`]);
  if (row >= 0) {
    if (side && data.sides[side].kept.value[row] !== null) list.push(["kept", keptText(side)(row)]);
    list.push(["n", `${data.numbers.n[row]} computing core${data.numbers.n[row] === 1 ? "" : "s"}`]);
    const count = side && state ? cell(data.sides[side][state].count, row) : null;
    if (count !== null) list.push(["samples", String(count)]);
    if (word("flags", row)) list.push(["flags", word("flags", row)]);
  }
  return [make("p", series.dataset.name), pairs(list)];
};
const show = (svg, spot) => {
  hide();
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  ring.setAttribute("class", "spot");
  ring.setAttribute("cx", spot.x);
  ring.setAttribute("cy", spot.y);
  ring.setAttribute("r", 6.5);
  svg.append(ring);
  tip.replaceChildren(...describe(svg, spot));
  tip.hidden = false;
  const at = ring.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = at.right + 10 + size.width < innerWidth ? at.right + 10 : Math.max(4, at.left - 10 - size.width);
  const top = Math.min(Math.max(4, at.top - size.height / 2), innerHeight - size.height - 4);
  tip.style.transform = `translate(${left}px,${top}px)`;
  svg.shownSpot = spot;
};
const hide = () => { $$(".spot").forEach((ring) => ring.remove()); tip.hidden = true; };
const nearest = (svg, event) => {
  const matrix = svg.getScreenCTM();
  if (!matrix) return null;
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
  let best = null, distance = 40 ** 2;
  for (const spot of read(svg)) {
    const d = (spot.x - at.x) ** 2 + (spot.y - at.y) ** 2;
    if (d < distance) { best = spot; distance = d; }
  }
  return best;
};
$$(".figure").forEach((svg) => {
  svg.addEventListener("pointermove", (event) => { const spot = nearest(svg, event); spot ? show(svg, spot) : hide(); });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("focus", () => { if (svg.matches(":focus-visible") && read(svg).length) show(svg, svg.shownSpot || read(svg)[0]); });
  svg.addEventListener("click", (event) => {
    const spot = nearest(svg, event);
    if (spot && spot.facts.rows.length) { clear(); showPoint(spot.facts.rows[spot.i], false); }
  });
  svg.addEventListener("keydown", (event) => {
    const list = read(svg), spot = svg.shownSpot || list[0];
    if (!spot) return;
    if (event.key === "Escape") return hide();
    const at = list.indexOf(spot);
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = list[at + (event.key === "ArrowRight" ? 1 : -1)];
      event.preventDefault();
      return show(svg, next && next.series === spot.series ? next : spot);
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const all = [...new Set(list.map((one) => one.series))];
      const series = all[(all.indexOf(spot.series) + (event.key === "ArrowDown" ? 1 : all.length - 1)) % all.length];
      event.preventDefault();
      const near = list.filter((one) => one.series === series).reduce((a, b) => (Math.abs(a.x - spot.x) <= Math.abs(b.x - spot.x) ? a : b));
      show(svg, near);
    }
  });
});
/* Focusing a figure out of sight scrolls to it: its values must follow. */
addEventListener("scroll", () => {
  const svg = document.activeElement;
  if (!tip.hidden && svg && svg.shownSpot && svg.matches(":focus-visible")) show(svg, svg.shownSpot);
  else hide();
}, {passive: true});

/* ---- start ---- */
let waiting = 0;
$("#filter").addEventListener("input", (event) => {
  view.text = event.target.value;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(apply);
});
$("#clear").addEventListener("click", clear);
$$("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
  const code = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "selected";
  }
}));
$$("[data-show-rows]").forEach((button) => button.addEventListener("click", () => {
  const rows = new Set(button.dataset.showRows.split(" ").map(Number));
  only((row) => rows.has(row), "filtered by finding");
  $("#points").scrollIntoView();
}));
box.addEventListener("scroll", () => refresh(false), {passive: true});
addEventListener("resize", () => refresh(false));
addEventListener("beforeprint", () => drawRows(0, Math.min(PRINTED, view.rows.length)));
addEventListener("afterprint", () => refresh(true));
drawHead();
apply();
})();
