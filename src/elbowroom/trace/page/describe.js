/* What lies under the pointer, and an event in words. */
const rowAt = (y) => view.rows.find((row) => y >= row.y && y < row.y + row.height);
const nearest = (times, time, reach) => {
  const at = lowerBound(times, time);
  const best = at > 0 && (at === times.length || time - times[at - 1] < times[at] - time) ? at - 1 : at;
  return best < times.length && Math.abs(times[best] - time) <= reach ? best : -1;
};
const sliceAt = (lane, time, reach) => {
  const at = lowerBound(lane.end, time);
  for (const i of [at, at - 1]) if (i >= 0 && i < lane.ids.length && lane.begin[i] <= time + reach && lane.end[i] >= time - reach && !isHidden(trace.slices.type[lane.ids[i]])) return lane.ids[i];
  return NONE;
};
/* {event, slice} or {gap} or {counter value} at a place of the canvas; null where there is nothing. */
const hit = (x, y) => {
  const row = rowAt(y), time = toTime(x), reach = 5 * (view.to - view.from) / plot;
  if (!row || x < gutter) return null;
  if (row.kind === "counter") {
    const at = lowerBound(row.counter.time, time + 1e-9) - 1;
    return at < 0 ? null : {event: row.counter.ids[at], slice: NONE, counter: row.counter};
  }
  if (row.kind !== "thread") return null;
  const {thread} = row, inside = y - row.y - PAD;
  if (inside < row.ticks) {
    const at = nearest(thread.instantTimes, time, reach);
    if (at >= 0 && !isHidden(trace.events.type[thread.instants[at]])) return {event: thread.instants[at], slice: NONE};
  } else {
    const lane = thread.lanes[Math.floor((inside - row.ticks) / LANE)], slice = lane ? sliceAt(lane, time, reach / 3) : NONE;
    if (slice !== NONE) return {event: trace.slices.event[slice], slice};
  }
  const gap = thread.gaps.find((one) => time >= one.begin - reach && time <= one.end + reach);
  return gap ? {gap, thread} : null;
};

const nameOfThread = (number) => {
  const thread = trace.threads[number], rank = trace.facts.ranks[thread.rank];
  return `rank ${rank.rank} · ${thread.name || `thread ${thread.thread}`}`;
};
const errorText = (error) => (error < 0 ? "unknown error" : `± ${duration(error)}`);
const flagsText = (flags) => FLAGS.filter((_, bit) => flags >> bit & 1);
/* Its fields by their names, as recorded; those without a name only where they hold something. */
const fieldsOf = (i) => {
  const {events, facts} = trace, type = facts.types[events.type[i]], kind = events.kind[i];
  if (kind === KIND.SEND || kind === KIND.RECEIVE) {
    const list = [[kind === KIND.SEND ? "to rank" : "from rank", String(events.first.low[i] | 0)], ["bytes", whole(Number(wide(events.second, i)))], ["tag", String(events.small[i] | 0)], ["communicator", String(events.first.high[i])]];
    if (events.sequence[i]) list.push(["number", whole(events.sequence[i])]);
    return list;
  }
  if (kind === KIND.COUNTER) return [[type.fields[0] || "which", String(events.small[i])], [type.fields[1] || "value", signed(events.first, i).toLocaleString("en-US")]];
  const values = [events.small[i], wide(events.first, i), wide(events.second, i)], places = ["small", "first", "second"];
  return values.map((value, place) => [type.fields[place] || places[place], String(value), type.fields[place]])
    .filter(([, value, name]) => name || value !== "0").map(([name, value]) => [name, value]);
};
const describeMessage = (i) => {
  const {messages, events} = trace, at = messages.of[i];
  if (!at) return [];
  const other = messages.send[at - 1] === i ? messages.receive[at - 1] : messages.send[at - 1], way = messages.received[at - 1] - messages.sent[at - 1];
  return [["message", `${messages.send[at - 1] === i ? "to" : "from"} ${nameOfThread(events.thread[other])}, latency ${duration(way)}`], ...flagsText(messages.flags[at - 1]).map((text) => ["flag", text])];
};
const numberedName = (slice) => {
  const event = trace.slices.event[slice];
  return trace.events.text[event] ? nameOfSlice(slice) : `${nameOfSlice(slice)} ${wide(trace.events.first, event)}`;
};
/* The tasks that a task waits for, and those that wait for it. */
const describeDependencies = (slice) => {
  const {pairs, of} = trace.dependencies, own = (of.get(slice) || []).map((place) => pairs[place]), list = [];
  for (const [name, end, other] of [["waits for", 1, 0], ["waited for by", 0, 1]]) {
    const names = own.filter((pair) => pair[end] === slice).map((pair) => numberedName(pair[other]));
    if (names.length) list.push([name, names.slice(0, 6).join(", ") + (names.length > 6 ? ` and ${names.length - 6} more` : "")]);
  }
  return list;
};
/* Title and pairs of words of an event, or of the slice it begins. */
const describe = ({event: i, slice, gap, thread}) => {
  if (gap) {
    const title = gap.lost ? `${plural(gap.lost, "event")} lost here` : "the recorder was busy";
    return [title, [["thread", nameOfThread(thread.number)], ["from", moment(gap.begin)], ["to", moment(gap.end)], ["for", duration(gap.end - gap.begin)]]];
  }
  const {events, facts, slices} = trace, type = facts.types[events.type[i]], pairs = [];
  const title = slice !== NONE ? nameOfSlice(slice) : type.name;
  const kind = slice === NONE ? KINDS[events.kind[i]] : "";
  pairs.push(["type", `${type.name} (${facts.categories[type.category]})${kind && kind !== "event" ? `, ${kind}` : ""}`]);
  if (slice !== NONE) {
    const end = slices.endEvent[slice];
    pairs.push(["lasts", `${slices.open[slice] ? "at least " : ""}${duration(slices.end[slice] - slices.begin[slice])}`]);
    pairs.push(["begins", `${moment(slices.begin[slice])} ${errorText(events.error[i])}`]);
    pairs.push(["ends", slices.open[slice] ? "the end is not in the trace" : `${moment(slices.end[slice])} ${errorText(events.error[end])}`]);
  } else pairs.push(["at", `${moment(events.time[i])} ${errorText(events.error[i])}`]);
  if (events.kind[i] === KIND.END && slice === NONE) pairs.push(["note", "the begin is not in the trace"]);
  if (events.kind[i] === KIND.REGION) pairs.push(["region of interest", events.small[i] ? "begins" : "ends"]);
  else pairs.push(...fieldsOf(i));
  if (events.text[i]) pairs.push(["text", facts.texts[events.text[i] - 1]]);
  pairs.push(["on", nameOfThread(events.thread[i])], ...describeMessage(i), ...describeDependencies(slice));
  if (trace.threads[events.thread[i]].damage) pairs.push(["flag", trace.threads[events.thread[i]].damage]);
  for (const text of flagsText(events.flags[i])) if (!pairs.some(([, one]) => one === text)) pairs.push(["flag", text]);
  return [title, pairs];
};
const listOf = (pairs) => {
  const list = make("dl");
  for (const [name, text] of pairs) {
    const bad = name === "flag";
    list.append(make("dt", name, bad ? "bad" : ""), make("dd", text, bad ? "bad" : ""));
  }
  return list;
};
