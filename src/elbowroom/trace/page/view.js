/* What of the trace is in sight: a part of the time, and rows of ranks and threads. */
const HEADER = 22, LANE = 18, TICKS = 14, COUNTER = 38, PAD = 4;
let trace = null;
const view = {from: 0, to: 1, rows: [], height: 0, collapsed: new Set(), hidden: new Set(), results: null, event: NONE, slice: NONE, range: null, hover: null,
  arrows: {messages: true, dependencies: false}};
const elements = {};

/* Of the rows' part of the window, px: read from the document once a picture, not once an event. */
let boxWidth = 0, boxHeight = 0, gutter = 0, plot = 1;
const measure = () => {
  boxWidth = elements.tracks.clientWidth;
  boxHeight = elements.tracks.clientHeight;
  gutter = boxWidth < 620 ? 96 : 188;
  plot = Math.max(50, boxWidth - gutter);
};
const toX = (time) => gutter + (time - view.from) / (view.to - view.from) * plot;
const toTime = (x) => view.from + (x - gutter) / plot * (view.to - view.from);

/* Rows from top to bottom: a header for each rank of several threads, threads, their counters. */
const layOut = () => {
  view.rows = [];
  let y = 0;
  const add = (row, height) => { view.rows.push({...row, y, height}); y += height; };
  trace.facts.ranks.forEach((rank, index) => {
    const threads = trace.threads.filter((thread) => thread.rank === index);
    const grouped = threads.length !== 1 || threads[0].counters.length > 0;
    if (grouped) add({kind: "rank", rank: index, threads}, HEADER);
    if (grouped && view.collapsed.has(index)) return;
    for (const thread of threads) {
      const ticks = thread.instants.length || !thread.lanes.length ? TICKS : 0;
      add({kind: "thread", rank: index, thread, ticks, grouped}, 2 * PAD + ticks + LANE * thread.lanes.length);
      for (const counter of thread.counters) if (!isHidden(counter.type)) add({kind: "counter", rank: index, thread, counter}, COUNTER);
    }
  });
  view.height = y;
  // Where arrows begin and end: a thread's row, or its rank's header while that is closed.
  view.placeOf = new Map();
  for (const row of view.rows) {
    if (row.kind === "thread") view.placeOf.set(row.thread.number, row);
    else if (row.kind === "rank" && view.collapsed.has(row.rank)) for (const thread of row.threads) view.placeOf.set(thread.number, row);
  }
  elements.space.style.height = `${Math.max(y, 1)}px`;
};
const isHidden = (type) => view.hidden.has(type);

/* The middle of where a slice is drawn; of an instant, of its tick. */
const middleOf = (number, depth) => {
  const row = view.placeOf.get(number);
  if (!row) return NaN;
  if (row.kind === "rank") return row.y + row.height / 2;
  return depth < 0 ? row.y + PAD + (row.ticks || LANE) / 2 : row.y + PAD + row.ticks + LANE * (depth + 0.5);
};
const depthOf = (slice) => trace.slices.depth[slice];

let waiting = 0;
const redraw = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; draw(); }); };
const span = () => trace.high - trace.low;
/* Shows from..to, not less than 10 ns, not more than the trace and a margin. */
const show = (from, to) => {
  const margin = 0.02 * span(), width = clamp(to - from, Math.min(10, span()), span() + 2 * margin);
  view.from = clamp((from + to - width) / 2, trace.low - margin, trace.high + margin - width);
  view.to = view.from + width;
  redraw();
};
const showAll = () => show(trace.low - 0.02 * span(), trace.high + 0.02 * span());
const zoom = (factor, at = (view.from + view.to) / 2) => {
  const width = clamp((view.to - view.from) * factor, Math.min(10, span()), 1.04 * span());
  const share = (at - view.from) / (view.to - view.from);
  show(at - share * width, at + (1 - share) * width);
};
const pan = (time) => show(view.from + time, view.to + time);

/* Brings an event into sight, and its thread's row. */
const reveal = (from, to, number) => {
  const width = view.to - view.from;
  if (from < view.from || to > view.to || (to - from) / width < 0.002) {
    const wanted = Math.max((to - from) * 4, Math.min(width, Math.max((to - from) * 40, span() / 2000, 200)));
    show((from + to) / 2 - wanted / 2, (from + to) / 2 + wanted / 2);
  }
  const rank = trace.threads[number].rank;
  if (view.collapsed.delete(rank)) layOut();
  const row = view.placeOf.get(number), box = elements.tracks;
  if (row && (row.y < box.scrollTop || row.y + row.height > box.scrollTop + box.clientHeight)) box.scrollTop = row.y + row.height / 2 - box.clientHeight / 2;
  redraw();
};
