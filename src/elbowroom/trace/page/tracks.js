/* The rows: slices, instants, counters, what is lost. What is narrower than a pixel is summed up per pixel. */
const drawTracks = (ticks) => {
  const width = boxWidth, height = boxHeight, context = sized(elements.canvas, width, height);
  const top = elements.tracks.scrollTop, left = gutter;
  context.font = FONT;
  context.textBaseline = "middle";
  const rows = view.rows.filter((row) => row.y + row.height > top && row.y < top + height);
  context.save();
  context.translate(0, -top);
  context.save();
  context.beginPath();
  context.rect(left, top, width - left, height);
  context.clip();
  drawBands(context, rows);
  context.fillStyle = look.line;
  context.globalAlpha = 0.5;
  for (const [at] of ticks) context.fillRect(Math.round(toX(at)), top, 1, Math.min(height, view.height - top));
  context.globalAlpha = 1;
  view.note = drawArrows(context, top, height);
  for (const row of rows) {
    if (row.kind === "thread") drawThread(context, row);
    else if (row.kind === "counter") drawCounter(context, row);
    else if (view.collapsed.has(row.rank)) drawClosed(context, row);
  }
  drawStrongArrows(context);
  drawRange(context, top, height);
  drawChosen(context);
  context.restore();
  for (const row of rows) drawLabel(context, row, left);
  context.fillStyle = look.line;
  context.fillRect(left - 1, top, 1, height);
  context.restore();
  elements.note.textContent = view.note;
};
const drawBands = (context, rows) => {
  context.fillStyle = look.band;
  for (const row of rows) for (const [a, b] of trace.regions[row.rank]) {
    const x = Math.max(gutter, toX(a)), to = Math.min(boxWidth, toX(b));
    if (to > x) context.fillRect(x, row.y, to - x, row.height);
  }
};
const drawLabel = (context, row, left) => {
  context.fillStyle = row.kind === "rank" ? look.card : look.page;
  context.fillRect(0, row.y, left, row.height);
  context.fillStyle = look.line;
  context.fillRect(0, row.y + row.height - 1, row.kind === "counter" ? left : boxWidth, 1);
  const rank = trace.facts.ranks[row.rank], middle = row.y + row.height / 2;
  context.textAlign = "left";
  if (row.kind === "rank") {
    const more = !rank.there ? "not in the trace" : rank.ended ? rank.host : `${rank.host} · killed`;
    context.fillStyle = rank.there && rank.ended ? look.ink : look.bad;
    context.font = `600 ${FONT}`;
    context.fillText(fitted(context, `${view.collapsed.has(row.rank) ? "▸" : "▾"} rank ${rank.rank} · ${more}`, left - 14), 6, middle);
    context.font = FONT;
  } else if (row.kind === "thread") {
    const killed = !row.grouped && !rank.ended, own = (row.thread.name || `thread ${row.thread.thread}`) + (killed ? " · killed" : "");
    context.fillStyle = row.thread.damage || row.thread.lost || killed ? look.bad : look.ink;
    context.fillText(fitted(context, row.grouped ? own : `${left < 150 ? "" : "rank "}${rank.rank} · ${own}`, left - (row.grouped ? 28 : 14)), row.grouped ? 20 : 8, middle);
  } else {
    context.fillStyle = look.faint;
    context.fillText(fitted(context, row.counter.name, left - 82), 28, middle);
    context.textAlign = "right";
    context.fillText(fitted(context, compact(row.counter.high), 48), left - 6, row.y + 9);
    context.fillText(fitted(context, compact(row.counter.low), 48), left - 6, row.y + row.height - 10);
  }
};
const compact = (value) => (Math.abs(value) < 1e4 ? String(Number(value.toPrecision(4))) : value.toExponential(2)).replace("-", "−");

/* ---- slices ---- */
const pixel = {sums: null, touched: [], at: -1, covered: 0};
/* Pixels side by side of the same look are one rectangle. */
const run = {from: 0, to: -1, type: -1, shade: 0};
const SHADES = 10;
const flushRun = (context, y) => {
  if (run.to > run.from) {
    context.globalAlpha = run.shade / SHADES;
    context.fillStyle = look.types[run.type];
    context.fillRect(run.from, y, run.to - run.from, LANE - 2);
    context.globalAlpha = 1;
  }
  run.to = -1;
};
const flushPixel = (context, y) => {
  if (pixel.at < 0) return;
  let best = -1, most = -1;
  for (const type of pixel.touched) {
    if (pixel.sums[type] > most) { most = pixel.sums[type]; best = type; }
    pixel.sums[type] = 0;
  }
  const shade = Math.round(clamp(pixel.covered * plot / (view.to - view.from), 0.3, 1) * SHADES);
  if (run.to !== pixel.at || run.type !== best || run.shade !== shade) {
    flushRun(context, y);
    Object.assign(run, {from: pixel.at, type: best, shade});
  }
  run.to = pixel.at + 1;
  pixel.touched.length = 0;
  pixel.at = -1;
  pixel.covered = 0;
};
const drawLane = (context, lane, y) => {
  const {slices} = trace, width = boxWidth, left = gutter, scale = plot / (view.to - view.from);
  pixel.sums ||= new Float64Array(trace.facts.types.length);
  for (let i = lowerBound(lane.end, view.from), count = lane.ids.length; i < count && lane.begin[i] <= view.to; i++) {
    const slice = lane.ids[i], type = slices.type[slice];
    if (isHidden(type)) continue;
    const x = left + (lane.begin[i] - view.from) * scale, to = left + (lane.end[i] - view.from) * scale;
    if (to - x >= 1.5) {
      flushPixel(context, y);
      flushRun(context, y);
      drawSlice(context, slice, type, Math.max(x, left - 2), Math.min(to, width + 2), y);
      continue;
    }
    const at = Math.floor(x);
    if (at !== pixel.at) flushPixel(context, y);
    pixel.at = at;
    if (!pixel.sums[type]) pixel.touched.push(type);
    pixel.sums[type] += lane.end[i] - lane.begin[i] + 1e-6;
    pixel.covered += lane.end[i] - lane.begin[i];
  }
  flushPixel(context, y);
  flushRun(context, y);
};
const drawSlice = (context, slice, type, x, to, y) => {
  const wide = Math.max(1, to - x - (to - x > 4 ? 1 : 0));
  context.fillStyle = look.types[type];
  context.fillRect(x, y, wide, LANE - 2);
  if (trace.slices.open[slice] && wide > 6) {
    context.fillStyle = hatch(context, look.page);
    context.fillRect(to - Math.min(14, wide / 2), y, Math.min(14, wide / 2), LANE - 2);
  }
  if (wide < 26) return;
  const text = fitted(context, nameOfSlice(slice), wide - 8);
  if (!text) return;
  context.fillStyle = look.onTypes[type];
  context.textAlign = "left";
  context.fillText(text, x + 4, y + LANE / 2 - 0.5);
};
const nameOfSlice = (slice) => {
  const text = trace.events.text[trace.slices.event[slice]];
  return text ? trace.facts.texts[text - 1] : trace.facts.types[trace.slices.type[slice]].name;
};

/* ---- threads ---- */
const drawThread = (context, row) => {
  const {thread} = row;
  if (row.ticks) drawTicks(context, thread, row.y + PAD);
  thread.lanes.forEach((lane, depth) => drawLane(context, lane, row.y + PAD + row.ticks + depth * LANE));
  for (const gap of thread.gaps) drawGap(context, gap, row);
};
const drawGap = (context, gap, row) => {
  if (gap.end < view.from || gap.begin > view.to) return;
  const x = Math.max(gutter, toX(gap.begin)), wide = Math.max(2, Math.min(boxWidth, toX(gap.end)) - x);
  const colour = gap.lost ? look.bad : look.faint;
  context.fillStyle = hatch(context, colour);
  context.globalAlpha = 0.5;
  context.fillRect(x, row.y + 1, wide, row.height - 3);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.fillRect(x, row.y + 1, wide, 2);
  const text = fitted(context, gap.lost ? `${plural(gap.lost, "event")} lost` : "flush", wide - 16);
  if (!text) return;
  const middle = x + wide / 2, half = widthOf(context, text) / 2 + 5;
  context.fillStyle = look.page;
  context.fillRect(middle - half, row.y + row.height / 2 - 9, 2 * half, 18);
  context.fillStyle = colour;
  context.textAlign = "center";
  context.fillText(text, middle, row.y + row.height / 2);
};
/* Instants: a mark each where there is room, else a bar for all of a pixel, of the first one's colour. */
const drawTicks = (context, thread, y) => {
  const times = thread.instantTimes, {events} = trace;
  let last = -10, i = lowerBound(times, view.from);
  while (i < times.length && times[i] <= view.to) {
    const id = thread.instants[i], type = events.type[id];
    if (isHidden(type)) { i++; continue; }
    const x = toX(times[i]), next = i + 1 < times.length ? toX(times[i + 1]) : Infinity;
    const bad = events.flags[id] & (FLAG.TACHYON | FLAG.SUSPECT);
    context.fillStyle = bad ? (events.flags[id] & FLAG.TACHYON ? look.bad : look.warn) : look.types[type];
    if (x - last > 7 && next - x > 7) drawMark(context, events.kind[id], x, y + TICKS / 2 - 1);
    else context.fillRect(x - 0.5, y + 1, 1.2, TICKS - 4);
    last = x;
    i = next - x < 1 ? lowerBound(times, toTime(x + 1), i + 1) : i + 1;
  }
};
/* Up: sent; down: received; a rhomb: anything else. */
const drawMark = (context, kind, x, y) => {
  const up = kind === KIND.SEND ? 1 : -1;
  context.beginPath();
  if (kind === KIND.SEND || kind === KIND.RECEIVE) { context.moveTo(x, y - 4.5 * up); context.lineTo(x + 4, y + 3.5 * up); context.lineTo(x - 4, y + 3.5 * up); }
  else { context.moveTo(x, y - 4.5); context.lineTo(x + 3.5, y); context.lineTo(x, y + 4.5); context.lineTo(x - 3.5, y); }
  context.fill();
};
/* A closed rank: how busy its threads are, one line each as far as there is room. */
const drawClosed = (context, row) => {
  const threads = row.threads.filter((thread) => thread.lanes.length), each = Math.max(1, Math.floor((row.height - 6) / Math.max(1, threads.length)));
  threads.slice(0, row.height - 6).forEach((thread, index) => {
    const lane = thread.lanes[0], scale = plot / (view.to - view.from), left = gutter;
    let last = -1;
    for (let i = lowerBound(lane.end, view.from); i < lane.ids.length && lane.begin[i] <= view.to; i++) {
      const type = trace.slices.type[lane.ids[i]], x = left + (lane.begin[i] - view.from) * scale, to = left + (lane.end[i] - view.from) * scale;
      if (isHidden(type) || to <= last) continue;
      context.fillStyle = look.types[type];
      context.fillRect(Math.max(x, last), row.y + 3 + index * each, Math.max(1, to - Math.max(x, last)), each);
      last = Math.max(to, x + 1);
    }
  });
};

/* ---- counters: least to most of each pixel, filled down to zero ---- */
const drawCounter = (context, row) => {
  const {time, values, low, high, type} = row.counter, width = boxWidth;
  const toY = (value) => row.y + row.height - 3 - (value - low) / (high - low) * (row.height - 7), zero = toY(clamp(0, low, high));
  let i = Math.max(0, lowerBound(time, view.from) - 1);
  if (!time.length) return;
  context.fillStyle = look.types[type];
  while (i < time.length && time[i] <= view.to) {
    const x = Math.max(gutter, Math.floor(toX(time[i])));
    let least = values[i], most = values[i], end = i + 1;
    for (; end < time.length && toX(time[end]) < x + 1; end++) { least = Math.min(least, values[end]); most = Math.max(most, values[end]); }
    const lastValue = values[end - 1], to = end < time.length ? Math.min(width, Math.ceil(toX(time[end]))) : Math.min(width, Math.ceil(toX(trace.last)));
    context.globalAlpha = 0.3;
    context.fillRect(x, Math.min(zero, toY(lastValue)), Math.max(1, to - x), Math.max(1, Math.abs(zero - toY(lastValue))));
    context.globalAlpha = 1;
    context.fillRect(x, toY(most), 1, Math.max(1.5, toY(least) - toY(most)));
    context.fillRect(x, toY(lastValue) - 0.75, Math.max(1, to - x), 1.5);
    i = end;
  }
};
