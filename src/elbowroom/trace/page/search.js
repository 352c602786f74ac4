/* Words that an event must have: in its type, category, text, thread; a number in its fields; name=value of a field. */
const matcher = (word) => {
  const {facts, events, threads} = trace, low = word.toLowerCase();
  const has = (text) => text.toLowerCase().includes(low);
  const [name, value] = word.split("="), places = [(i) => events.small[i], (i) => wide(events.first, i), (i) => wide(events.second, i)];
  if (value !== undefined && name) {
    const fields = facts.types.map((type) => type.fields.findIndex((field, place) => (field || ["small", "first", "second"][place]).toLowerCase() === name.toLowerCase()));
    if (name.toLowerCase() === "rank") return (i) => String(facts.ranks[threads[events.thread[i]].rank].rank) === value;
    return (i) => { const place = fields[events.type[i]]; return place >= 0 && String(places[place](i)) === value; };
  }
  const types = facts.types.map((type) => has(type.name) || has(facts.categories[type.category]));
  const texts = facts.texts.map(has), rows = threads.map((thread) => has(thread.name));
  const number = /^-?\d+$/.test(word) ? word : null;
  const isMessage = (i) => events.kind[i] === KIND.SEND || events.kind[i] === KIND.RECEIVE;
  const equals = (i) => (isMessage(i) ? fieldsOf(i).some(([, text]) => text.replace(/\u202f/g, "") === number) : places.some((place) => String(place(i)) === number));
  return (i) => types[events.type[i]] || rows[events.thread[i]] || (events.text[i] && texts[events.text[i] - 1]) || (number !== null && equals(i));
};
/* Ends of slices are found with their begins, not twice. */
const search = (text) => {
  const words = text.split(/\s+/).filter(Boolean), tests = words.map(matcher), ids = [], {kind} = trace.events;
  if (!words.length) { view.results = null; return; }
  for (let i = 0; i < trace.count; i++) if (kind[i] !== KIND.END && !isHidden(trace.events.type[i]) && tests.every((test) => test(i))) ids.push(i);
  view.results = {text, ids: Uint32Array.from(ids), at: -1};
};
const showResults = () => {
  const {results} = view;
  $("#results").textContent = !results ? "" : !results.ids.length ? "no results" : results.at < 0 ? `${whole(results.ids.length)} found` : `${whole(results.at + 1)} of ${whole(results.ids.length)}`;
  for (const button of [$("#next"), $("#previous")]) button.disabled = !results || !results.ids.length;
};
const sliceOfEvent = (i) => {
  if (trace.events.kind[i] !== KIND.BEGIN) return NONE;
  for (const lane of trace.threads[trace.events.thread[i]].lanes) {
    for (let at = lowerBound(lane.begin, trace.events.time[i]); at < lane.ids.length && lane.begin[at] <= trace.events.time[i]; at++) if (trace.slices.event[lane.ids[at]] === i) return lane.ids[at];
  }
  return NONE;
};
const goTo = (i) => {
  const slice = sliceOfEvent(i);
  choose({event: i, slice});
  reveal(trace.events.time[i], slice === NONE ? trace.events.time[i] : trace.slices.end[slice], trace.events.thread[i]);
};
/* The next one after what is chosen or in sight, the first time; then one by one, round and round. */
const step = (by) => {
  const {results} = view;
  if (!results || !results.ids.length) return;
  const count = results.ids.length;
  if (results.at < 0) {
    const from = view.event !== NONE ? trace.events.time[view.event] : view.from;
    let at = 0;
    while (at < count && trace.events.time[results.ids[at]] < from) at++;
    results.at = (by > 0 ? at : at - 1 + count) % count;
  } else results.at = (results.at + by + count) % count;
  goTo(results.ids[results.at]);
  showResults();
};
