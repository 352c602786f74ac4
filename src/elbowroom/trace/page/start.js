/* The page comes up: data, legend, buttons. */
const setHidden = (types, hidden) => {
  for (const type of types) hidden ? view.hidden.add(type) : view.hidden.delete(type);
  if (view.event !== NONE && isHidden(trace.events.type[view.event])) choose(null);
  layOut();
  showLegend();
  search($("#search").value);
  showResults();
  redraw();
};
const legendButton = (text, types, count, colour) => {
  const button = make("button"), on = types.some((type) => !isHidden(type)), dot = make("i", "", "dot");
  button.type = "button";
  button.setAttribute("aria-pressed", String(on));
  button.title = `${on ? "hide" : "show"} ${text}, ${plural(count, "event")}`;
  if (colour) { dot.style.background = colour; button.append(dot); }
  button.append(text);
  button.addEventListener("click", () => { setHidden(types, on); focusLegend(text, Boolean(colour)); });
  return button;
};
const focusLegend = (text, isType) => [...elements.legend.querySelectorAll(isType ? ".types button" : "li > button")].find((button) => button.textContent === text)?.focus();
const showLegend = () => {
  const counts = trace.counts ||= trace.events.type.reduce((sums, type) => { sums[type]++; return sums; }, new Uint32Array(trace.facts.types.length));
  elements.legend.replaceChildren(...trace.facts.categories.flatMap((category, index) => {
    const types = [...counts.keys()].filter((type) => trace.facts.types[type].category === index && counts[type]);
    if (!types.length) return [];
    const item = make("li"), list = make("span", undefined, "types"), sum = types.reduce((all, type) => all + counts[type], 0);
    item.append(legendButton(category, types, sum, ""), list);
    list.append(...types.map((type) => legendButton(trace.facts.types[type].name, [type], counts[type], look.types[type])));
    return [item];
  }));
};
/* How wrong the clocks are, at most: of the events, by rank. */
const clockText = () => {
  const {error, flags} = trace.events;
  let worst = 0, unknown = 0, unsynced = 0;
  for (let i = 0; i < error.length; i++) { if (error[i] < 0) unknown++; else if (error[i] > worst) worst = error[i]; if (flags[i] & FLAG.UNSYNCED) unsynced++; }
  if (!error.length) return "";
  const parts = [unknown === error.length ? "the error of times is unknown" : `times are wrong by at most ${duration(worst)}`];
  if (unknown && unknown < error.length) parts.push(`unknown for ${plural(unknown, "event")}`);
  if (unsynced) parts.push(`${plural(unsynced, "event")} of clocks without a sync point`);
  return parts.join("; ");
};
const toggleArrows = (button, name) => button.addEventListener("click", () => {
  view.arrows[name] = !view.arrows[name];
  button.setAttribute("aria-pressed", String(view.arrows[name]));
  redraw();
});
const listen = () => {
  const {tracks, axis, overview} = elements;
  addEventListener("keydown", keys);
  for (const element of [tracks, axis, overview]) element.addEventListener("wheel", wheel, {passive: false});
  tracks.addEventListener("scroll", redraw, {passive: true});
  elements.canvas.addEventListener("pointerdown", (event) => startDrag(event, event.shiftKey ? "select" : "move"));
  axis.addEventListener("pointerdown", (event) => startDrag(event, "select"));
  for (const element of [elements.canvas, axis]) {
    element.addEventListener("pointermove", (event) => {
      if (drag.kind) { hideTip(); return moveDrag(event); }
      const [x, y] = place(event), item = element === axis ? null : hit(x, y);
      elements.canvas.style.cursor = item ? "pointer" : "";
      return item ? showTip(event, item) : hideTip();
    });
    element.addEventListener("pointerup", endDrag);
    element.addEventListener("pointercancel", endDrag);
    element.addEventListener("pointerleave", hideTip);
  }
  elements.canvas.addEventListener("dblclick", zoomToChosen);
  for (const type of ["pointerdown", "pointermove"]) overview.addEventListener(type, overviewDrag);
  new ResizeObserver(redraw).observe(tracks);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => { readLook(); showLegend(); showStatistics(); redraw(); });
  const actions = {"zoom-in": () => zoom(0.5), "zoom-out": () => zoom(2), all: showAll, next: () => step(1), previous: () => step(-1)};
  for (const [id, action] of Object.entries(actions)) $(`#${id}`).addEventListener("click", action);
  toggleArrows($("#messages"), "messages");
  toggleArrows($("#dependencies"), "dependencies");
  let timer = 0;
  $("#search").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => { search(event.target.value); showResults(); redraw(); }, trace.count > 200000 ? 250 : 60);
  });
  $("#search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(timer);
    if (!view.results || view.results.text !== event.target.value) search(event.target.value);
    step(event.shiftKey ? -1 : 1);
    showResults();
  });
};
const start = async () => {
  const facts = JSON.parse($("#facts").textContent);
  for (const id of ["tracks", "space", "canvas", "axis", "overview", "tip", "details", "statistics", "legend", "note"]) elements[id] = $(`#${id}`);
  document.documentElement.classList.add("scripted");
  if (innerHeight < 640) $(".notes")?.removeAttribute("open");
  trace = build(facts, await unpack(facts));
  $("#data").remove();
  readLook();
  $("#clocks").textContent = clockText();
  $("#messages").hidden = !trace.messages.count;
  $("#dependencies").hidden = !trace.dependencies.pairs.length;
  measure();
  layOut();
  showLegend();
  choose(null);
  showStatistics();
  showResults();
  listen();
  showAll();
  document.documentElement.dataset.ready = "yes";
};
start().catch((error) => {
  $("#failed").textContent = `This page cannot be shown: ${error.message || error}`;
  $("#failed").hidden = false;
  throw error;
});
