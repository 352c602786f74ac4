/* Pointer, wheel and keys. */
const hideTip = () => { elements.tip.hidden = true; view.hover = null; };
const showTip = (event, item) => {
  const [title, pairs] = describe(item), tip = elements.tip;
  tip.replaceChildren(make("p", title), listOf(pairs.slice(0, 14)));
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  const left = event.clientX + 16 + size.width < innerWidth ? event.clientX + 16 : Math.max(4, event.clientX - 16 - size.width);
  tip.style.transform = `translate(${left}px,${clamp(event.clientY + 14, 4, Math.max(4, innerHeight - size.height - 4))}px)`;
};
const place = (event) => {
  const box = elements.canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top + elements.tracks.scrollTop];
};
const choose = (item) => {
  view.event = item ? item.event : NONE;
  view.slice = item ? item.slice : NONE;
  const box = elements.details;
  if (!item) box.replaceChildren(make("h2", "No event selected"), make("p", "Click an event, or drag over the time axis to sum up a time range.", "quiet"));
  else {
    const [title, pairs] = describe(item), button = make("button", "zoom to event"), heading = make("h2", title);
    button.type = "button";
    button.addEventListener("click", zoomToChosen);
    heading.append(" ", button);
    box.replaceChildren(heading, listOf(pairs));
  }
  redraw();
};
const zoomToChosen = () => {
  if (view.event === NONE) return;
  const {slices, events} = trace, message = trace.messages.of[view.event];
  const [from, to] = view.slice !== NONE ? [slices.begin[view.slice], slices.end[view.slice]]
    : message ? [trace.messages.sent[message - 1], trace.messages.received[message - 1]].sort((a, b) => a - b) : [events.time[view.event] - 500, events.time[view.event] + 500];
  const more = Math.max(20, (to - from) * 0.15);
  show(from - more, to + more);
};
/* The event before or after the chosen one on its thread. */
const neighbour = (by) => {
  const number = view.event === NONE ? (view.rows.find((row) => row.kind === "thread") || {thread: trace.threads[0]}).thread?.number : trace.events.thread[view.event];
  const ids = number === undefined ? [] : trace.threads[number].ids;
  if (!ids.length) return;
  let at = view.event === NONE ? lowerBound(ids, lowerBound(trace.events.time, view.from)) - (by > 0 ? 1 : 0) : lowerBound(ids, view.event);
  do at += by; while (at >= 0 && at < ids.length && (trace.events.kind[ids[at]] === KIND.END && trace.slices.count || isHidden(trace.events.type[ids[at]])));
  if (at >= 0 && at < ids.length) goTo(ids[at]);
};

/* ---- dragging: the axis selects, the rows move; two fingers zoom ---- */
const drag = {pointers: new Map(), kind: "", x: 0, y: 0, moved: false, from: 0};
const startDrag = (event, kind) => {
  if (event.button) return;
  event.currentTarget.setPointerCapture(event.pointerId);
  drag.pointers.set(event.pointerId, event.clientX);
  const [x] = place(event);
  Object.assign(drag, {kind: drag.pointers.size > 1 ? "pinch" : kind, x: event.clientX, y: event.clientY, moved: false, from: toTime(x), apart: 0});
};
const moveDrag = (event) => {
  const {kind} = drag, [x] = place(event);
  if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 3) drag.moved = true;
  if (kind === "select" && drag.moved) selectSoon([drag.from, clamp(toTime(x), view.from, view.to)]);
  else if (kind === "move" && drag.moved) {
    pan(-(event.clientX - drag.x) / plot * (view.to - view.from));
    elements.tracks.scrollTop -= event.clientY - drag.y;
    [drag.x, drag.y] = [event.clientX, event.clientY];
  } else if (kind === "pinch") {
    drag.pointers.set(event.pointerId, event.clientX);
    const [a, b] = drag.pointers.values(), apart = Math.max(10, Math.abs(a - b));
    if (drag.apart) zoom(drag.apart / apart, toTime((a + b) / 2 - elements.canvas.getBoundingClientRect().left));
    drag.apart = apart;
  }
};
let pending = null;
const selectSoon = (range) => {
  if (!pending) requestAnimationFrame(() => { const item = pending; pending = null; selectRange(item); });
  pending = range;
};
const endDrag = (event) => {
  drag.pointers.delete(event.pointerId);
  const {kind, moved} = drag;
  if (drag.pointers.size === 0) drag.kind = "";
  if (moved || event.type === "pointercancel") return;
  const [x, y] = place(event);
  if (kind === "select") selectRange(null);
  else if (kind === "move") {
    const row = rowAt(y);
    if (x < gutter && row && row.kind === "rank") toggleRank(row.rank);
    else { const item = hit(x, y); choose(item && item.gap ? null : item); }
  }
};
const toggleRank = (rank) => {
  if (!view.collapsed.delete(rank)) view.collapsed.add(rank);
  layOut();
  redraw();
};
const overviewDrag = (event) => {
  if (!(event.buttons & 1) && event.type !== "pointerdown") return;
  if (event.type === "pointerdown") event.currentTarget.setPointerCapture(event.pointerId);
  const middle = overviewTime(event.clientX - elements.overview.getBoundingClientRect().left), half = (view.to - view.from) / 2;
  show(middle - half, middle + half);
};

/* ---- wheel: with Ctrl, by two fingers, or where nothing can be scrolled it zooms; sideways it moves ---- */
const wheel = (event) => {
  const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1, dx = event.deltaX * unit, dy = event.deltaY * unit;
  const canScroll = event.currentTarget === elements.tracks && view.height > boxHeight + 1;
  if (!event.ctrlKey && !event.metaKey && (event.shiftKey || Math.abs(dx) > Math.abs(dy))) {
    event.preventDefault();
    return pan((event.shiftKey && !dx ? dy : dx) / plot * (view.to - view.from));
  }
  if (canScroll && !event.ctrlKey && !event.metaKey && !event.altKey) return undefined;
  event.preventDefault();
  hideTip();
  const x = event.clientX - elements.canvas.getBoundingClientRect().left;
  return zoom(Math.exp(clamp(dy, -200, 200) * (event.ctrlKey && Math.abs(dy) < 40 ? 0.012 : 0.0022)), toTime(Math.max(x, gutter)));
};
const KEYS = {
  ArrowLeft: () => pan(-(view.to - view.from) * 0.15), ArrowRight: () => pan((view.to - view.from) * 0.15),
  a: () => pan(-(view.to - view.from) * 0.15), d: () => pan((view.to - view.from) * 0.15),
  w: () => zoom(0.6), s: () => zoom(1 / 0.6), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
  ArrowUp: () => elements.tracks.scrollBy(0, -60), ArrowDown: () => elements.tracks.scrollBy(0, 60),
  0: showAll, Home: showAll, f: () => (view.event !== NONE ? zoomToChosen() : view.range && show(...view.range)),
  "]": () => neighbour(1), "[": () => neighbour(-1), n: () => step(1), N: () => step(-1), "/": () => $("#search").focus(),
  Escape: () => { choose(null); selectRange(null); hideTip(); }};
const keys = (event) => {
  const writing = event.target.matches("input, textarea, select");
  if (writing && event.key === "Escape") event.target.blur();
  if (writing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
};
