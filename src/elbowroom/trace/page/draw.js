/* The canvases: colours, the axis of time, the overview of the whole trace. */
const look = {};
const readLook = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "card", "ink", "faint", "line", "link", "bad", "warn", "good", "band"]) look[name] = style.getPropertyValue(`--${name}`).trim();
  const dark = matchMedia("(prefers-color-scheme:dark)").matches ? 1 : 0;
  look.types = trace.facts.types.map((type) => type.colours[dark]);
  look.onTypes = look.types.map(readable);
  look.hatches = new Map();
  overviewDrawn = "";
};
/* Black or white, whichever can be read on a colour (WCAG 2.1, relative luminance). */
const readable = (colour) => {
  const [r, g, b] = [1, 3, 5].map((at) => { const part = parseInt(colour.slice(at, at + 2), 16) / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#10151b" : "#ffffff";
};
/* A canvas of the size of its element, in pixels of the screen. */
const sized = (canvas, width, height) => {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; canvas.style.width = `${width}px`; canvas.style.height = `${height}px`; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
};
const hatch = (context, colour) => {
  if (look.hatches.has(colour)) return look.hatches.get(colour);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const inside = tile.getContext("2d");
  inside.strokeStyle = colour;
  inside.lineWidth = 2;
  inside.beginPath();
  for (const from of [-8, 0, 8]) { inside.moveTo(from, 8); inside.lineTo(from + 8, 0); }
  inside.stroke();
  look.hatches.set(colour, context.createPattern(tile, "repeat"));
  return look.hatches.get(colour);
};
const FONT = "11.5px system-ui, -apple-system, 'Segoe UI', sans-serif";
const widths = new Map();
const widthOf = (context, text) => {
  if (!widths.has(text)) { if (widths.size > 20000) widths.clear(); widths.set(text, context.measureText(text).width); }
  return widths.get(text);
};
/* As much of a text as fits, or nothing. */
const fitted = (context, text, room) => {
  if (widthOf(context, text) <= room) return text;
  const letters = Math.floor(text.length * (room - 8) / widthOf(context, text));
  return letters >= 3 ? `${text.slice(0, letters)}…` : "";
};

/* ---- the axis ---- */
const stepFor = (wanted) => {
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= wanted);
};
/* Ticks, and their labels: moments, or times after a labelled moment. */
const ticksOf = (width) => {
  const step = stepFor((view.to - view.from) / Math.max(2, width / 110));
  const [scale, unit] = unitOf(Math.max(Math.abs(view.to), step));
  const far = Math.max(Math.abs(view.from), Math.abs(view.to)) / step > 20000;
  const base = far ? Math.floor(view.from / (step * 1000)) * step * 1000 : 0;
  const [ownScale, ownUnit] = far ? unitOf(Math.max(step * 10, view.to - base)) : [scale, unit];
  const decimals = Math.max(0, Math.round(Math.log10(ownScale)) - Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const value = ((at - base) / ownScale).toFixed(decimals).replace("-", "−").replace(/^−(0(\.0*)?)$/, "$1");
    ticks.push([at, `${far ? "+" : ""}${value} ${ownUnit}`]);
  }
  return {step, base: far ? moment(base) : "", ticks};
};
const drawAxis = () => {
  const canvas = elements.axis, width = boxWidth, height = 28, context = sized(canvas, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  const {ticks, base} = ticksOf(plot);
  context.fillStyle = look.faint;
  context.textAlign = "left";
  context.fillText(fitted(context, base ? `${base} …` : "time since start", gutter - 12), 8, 14);
  if (view.range) {
    const [a, b] = view.range.map(toX);
    context.fillStyle = look.link;
    context.globalAlpha = 0.25;
    context.fillRect(Math.max(gutter, a), 0, Math.max(1, Math.min(width, b) - Math.max(gutter, a)), height);
    context.globalAlpha = 1;
  }
  context.beginPath();
  context.rect(gutter, 0, width, height);
  context.save();
  context.clip();
  context.textAlign = "center";
  for (const [at, text] of ticks) {
    const x = Math.round(toX(at)) + 0.5, half = widthOf(context, text) / 2;
    context.fillStyle = look.line;
    context.fillRect(x - 0.5, 21, 1, 7);
    context.fillStyle = look.ink;
    context.fillText(text, clamp(x, gutter + half + 2, width - half - 4), 12);
  }
  context.restore();
  context.fillStyle = look.line;
  context.fillRect(0, height - 1, width, 1);
  return ticks;
};

/* ---- the overview: how many events there are when, by category, and what part is in sight ---- */
let overviewDrawn = "", overviewImage = null;
const overviewX = (time) => gutter + (time - trace.low) / span() * plot;
const overviewTime = (x) => trace.low + (x - gutter) / plot * span();
const paintOverview = (width, height) => {
  const image = document.createElement("canvas"), ratio = devicePixelRatio || 1;
  image.width = Math.max(1, Math.round(width * ratio));
  image.height = Math.max(1, Math.round(height * ratio));
  const context = image.getContext("2d"), columns = Math.ceil(plot / 2);
  context.scale(ratio, ratio);
  const {events} = trace, kinds = trace.facts.types.length, sums = new Uint32Array(columns * kinds), all = new Uint32Array(columns);
  for (let i = 0; i < trace.count; i++) {
    const type = events.type[i];
    if (isHidden(type)) continue;
    const at = Math.min(columns - 1, Math.floor((events.time[i] - trace.low) / span() * columns));
    sums[at * kinds + type]++;
    all[at]++;
  }
  let most = 1;
  for (const sum of all) most = Math.max(most, sum);
  context.fillStyle = look.band;
  for (const list of trace.regions) for (const [a, b] of list) context.fillRect(overviewX(a), 0, Math.max(1, overviewX(b) - overviewX(a)), height);
  for (let at = 0; at < columns; at++) {
    let y = height;
    const scale = (height - 6) / Math.sqrt(most * all[at]);  // by the root, so that few are visible beside many
    for (let type = 0; type < kinds; type++) {
      const tall = sums[at * kinds + type] * scale;
      if (!tall) continue;
      context.fillStyle = look.types[type];
      context.fillRect(gutter + 2 * at, y - tall, 2, tall);
      y -= tall;
    }
  }
  for (const thread of trace.threads) for (const gap of thread.gaps) if (gap.lost) {
    context.fillStyle = look.bad;
    context.fillRect(overviewX(gap.begin), 0, Math.max(1.5, overviewX(gap.end) - overviewX(gap.begin)), 3);
  }
  context.fillStyle = look.faint;
  context.font = FONT;
  context.fillText("√ events", 8, height / 2 + 4);
  return image;
};
const drawOverview = () => {
  const width = boxWidth, height = 44, context = sized(elements.overview, width, height);
  const key = `${width} ${devicePixelRatio} ${[...view.hidden]}`;
  if (key !== overviewDrawn) { overviewImage = paintOverview(width, height); overviewDrawn = key; }
  context.drawImage(overviewImage, 0, 0, width, height);
  if (view.results && view.results.ids.length) {
    context.fillStyle = look.link;
    let last = -1;
    for (const i of view.results.ids) {
      const x = Math.round(overviewX(trace.events.time[i]));
      if (x !== last) context.fillRect(x, height - 5, 1, 5);
      last = x;
    }
  }
  const a = clamp(overviewX(view.from), gutter, width), b = clamp(overviewX(view.to), gutter, width);
  context.fillStyle = look.page;
  context.globalAlpha = 0.62;
  context.fillRect(gutter, 0, a - gutter, height);
  context.fillRect(b, 0, width - b, height);
  context.globalAlpha = 1;
  context.strokeStyle = look.link;
  context.lineWidth = 1.5;
  context.strokeRect(a + 0.75, 0.75, Math.max(2, b - a - 1.5), height - 1.5);
  if (view.range) {
    const [from, to] = view.range.map(overviewX);
    context.fillStyle = look.link;
    context.globalAlpha = 0.3;
    context.fillRect(from, 0, Math.max(1, to - from), height);
    context.globalAlpha = 1;
  }
};

const draw = () => {
  const started = performance.now();
  measure();
  const ticks = drawAxis();
  drawOverview();
  drawTracks(ticks);
  view.drawn = performance.now() - started;
};
