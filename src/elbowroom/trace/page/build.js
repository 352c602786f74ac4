/* From events to what is drawn: slices between begin and end, their depth, instants, counters, messages, dependencies. */
const NONE = 0xFFFFFFFF;
const OPEN_END = 1;

/* Events of each thread, in order of time. */
const byThread = (thread, count) => {
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < thread.length; i++) starts[thread[i] + 1]++;
  for (let i = 0; i < count; i++) starts[i + 1] += starts[i];
  const places = starts.slice(), ids = new Uint32Array(thread.length);
  for (let i = 0; i < thread.length; i++) ids[places[thread[i]]++] = i;
  return Array.from({length: count}, (_, i) => ids.subarray(starts[i], starts[i + 1]));
};

/* Slices of all threads in one set of arrays; each thread's stand together, by their begin. */
const makeSlices = (count) => ({
  count: 0, begin: new Float64Array(count), end: new Float64Array(count), event: new Uint32Array(count), endEvent: new Uint32Array(count).fill(NONE),
  parent: new Uint32Array(count), type: new Uint16Array(count), depth: new Uint8Array(count), thread: new Uint32Array(count), open: new Uint8Array(count)});

/* An end belongs to the innermost begin of its type (of its task); those inside that have not ended, end with it. */
const matching = (events, slices, stack, i, isTask) => {
  for (let at = stack.length - 1; at >= 0; at--) {
    const begin = slices.event[stack[at]];
    if (events.type[begin] !== events.type[i]) continue;
    const {low, high} = events.first;
    if (!isTask[events.type[i]] || (low[begin] === low[i] && high[begin] === high[i])) return at;
  }
  return -1;
};
const buildThread = (events, slices, ids, number, isTask, gaps, last) => {
  const stack = [], instants = [], counters = new Map(), begins = slices.count;
  for (const i of ids) {
    const kind = events.kind[i];
    if (kind === KIND.BEGIN) {
      const slice = slices.count++;
      slices.begin[slice] = events.time[i];
      slices.event[slice] = i;
      slices.type[slice] = events.type[i];
      slices.thread[slice] = number;
      slices.depth[slice] = Math.min(255, stack.length);
      slices.parent[slice] = stack.length ? stack[stack.length - 1] : NONE;
      stack.push(slice);
    } else if (kind === KIND.END) {
      const at = matching(events, slices, stack, i, isTask);
      if (at < 0) { instants.push(i); continue; }
      while (stack.length > at) {
        const slice = stack.pop();
        slices.end[slice] = events.time[i];
        if (stack.length === at) slices.endEvent[slice] = i; else slices.open[slice] = OPEN_END;
      }
    } else if (kind === KIND.COUNTER) {
      const key = events.type[i] * 4294967296 + events.small[i];
      if (!counters.has(key)) counters.set(key, []);
      counters.get(key).push(i);
    } else instants.push(i);
  }
  for (const slice of stack) {
    const gap = gaps.find((one) => one.begin >= slices.begin[slice] && one.lost > 0);
    slices.end[slice] = gap ? gap.begin : last;
    slices.open[slice] = OPEN_END;
  }
  return {instants: Uint32Array.from(instants), counters, slices: [begins, slices.count]};
};
/* The slices of one depth of a thread: one after the other, so that their begins and their ends rise. */
const lanesOf = (slices, [from, to]) => {
  const counts = [];
  for (let slice = from; slice < to; slice++) counts[slices.depth[slice]] = (counts[slices.depth[slice]] || 0) + 1;
  const lanes = Array.from(counts, (count) => ({ids: new Uint32Array(count || 0), begin: new Float64Array(count || 0), end: new Float64Array(count || 0), count: 0}));
  for (let slice = from; slice < to; slice++) {
    const lane = lanes[slices.depth[slice]], at = lane.count++;
    lane.ids[at] = slice;
    lane.begin[at] = slices.begin[slice];
    lane.end[at] = slices.end[slice];
  }
  return lanes;
};
const counterTracks = (events, facts, number, counters) => [...counters].map(([key, list]) => {
  const ids = Uint32Array.from(list), time = Float64Array.from(list, (i) => events.time[i]);
  const values = Float64Array.from(list, (i) => Number(signed(events.first, i)));
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  const type = Math.floor(key / 4294967296), which = key % 4294967296;
  const field = facts.types[type].fields[0];
  const name = facts.types[type].name + (field || which ? ` · ${field || "number"} ${which}` : "");
  return {thread: number, type, which, name, ids, time, values, low: Math.min(0, low), high: Math.max(high, low + 1e-9, 0)};
}).sort((a, b) => a.type - b.type || a.which - b.which);

/* Intervals in which a rank's region of interest was on. */
const regionsOf = (events, facts, first, last) => {
  const intervals = facts.ranks.map(() => []), open = facts.ranks.map(() => -1);
  const known = facts.ranks.map(() => false);
  for (let i = 0; i < events.kind.length; i++) {
    if (events.kind[i] !== KIND.REGION) continue;
    const rank = facts.threads[events.thread[i]].rank;
    if (events.small[i]) open[rank] = open[rank] < 0 ? events.time[i] : open[rank];
    else if (open[rank] >= 0 || !known[rank]) { intervals[rank].push([open[rank] >= 0 ? open[rank] : first, events.time[i]]); open[rank] = -1; }
    known[rank] = true;
  }
  open.forEach((begin, rank) => { if (begin >= 0) intervals[rank].push([begin, last]); });
  return intervals;
};
/* Tasks that wait for others: from the last slice of one to the first of the other, in one process. */
const dependenciesOf = (events, facts, slices, isTask) => {
  const key = (rank, i, numbers) => `${rank} ${numbers.high[i]} ${numbers.low[i]}`;
  const rankOf = (i) => facts.threads[events.thread[i]].rank;
  const dependency = facts.types.map((type) => type.name === "dependency" && facts.categories[type.category] === "task");
  if (!dependency.some(Boolean)) return {pairs: [], of: new Map()};
  const first = new Map(), last = new Map(), pairs = [], of = new Map();
  for (let slice = 0; slice < slices.count; slice++) {
    if (!isTask[slices.type[slice]]) continue;
    const task = key(rankOf(slices.event[slice]), slices.event[slice], events.first);
    if (!first.has(task) || slices.begin[first.get(task)] > slices.begin[slice]) first.set(task, slice);
    if (!last.has(task) || slices.end[last.get(task)] < slices.end[slice]) last.set(task, slice);
  }
  for (let i = 0; i < events.kind.length; i++) {
    if (!dependency[events.type[i]] || events.kind[i] !== KIND.EVENT) continue;
    const from = last.get(key(rankOf(i), i, events.first)), to = first.get(key(rankOf(i), i, events.second));
    if (from === undefined || to === undefined) continue;
    const place = pairs.push([from, to]) - 1;
    for (const slice of [from, to]) of.has(slice) ? of.get(slice).push(place) : of.set(slice, [place]);
  }
  pairs.sort((a, b) => slices.end[a[0]] - slices.end[b[0]]);
  of.clear();
  pairs.forEach((pair, place) => { for (const slice of pair) of.has(slice) ? of.get(slice).push(place) : of.set(slice, [place]); });
  return {pairs, of};
};
/* Messages by the time they were sent, as they come; `reach` is the latest arrival of this and all before. */
const messagesOf = (events) => {
  const count = events.send.length, messages = {count, send: events.send, receive: events.receive, flags: events.message_flags,
    sent: new Float64Array(count), received: new Float64Array(count), reach: new Float64Array(count), of: new Uint32Array(events.kind.length)};
  let reach = -Infinity;
  for (let i = 0; i < count; i++) {
    messages.sent[i] = events.time[messages.send[i]];
    messages.received[i] = events.time[messages.receive[i]];
    messages.reach[i] = reach = Math.max(reach, messages.sent[i], messages.received[i]);
    messages.of[messages.send[i]] = messages.of[messages.receive[i]] = i + 1;
  }
  return messages;
};
/* The first and last moment, and what is shown of the time: around a lone moment there is some room. */
const boundsOf = (first, last) => {
  if (!Number.isFinite(first)) return {first: 0, last: 0, low: 0, high: 1000};
  return last > first ? {first, last, low: first, high: last} : {first, last, low: first - 500, high: last + 500};
};
const build = (facts, events) => {
  const count = events.time.length, gaps = facts.threads.map(() => []);
  for (const [thread, begin, end, lost] of facts.gaps) gaps[thread].push({begin, end, lost});
  gaps.forEach((list) => list.sort((a, b) => a.begin - b.begin));
  let first = count ? events.time[0] : Infinity, last = count ? events.time[count - 1] : -Infinity;
  for (const [, begin, end] of facts.gaps) { first = Math.min(first, begin); last = Math.max(last, end); }
  first = facts.from ?? first;
  last = facts.until ?? last;
  const isTask = facts.types.map((type) => facts.categories[type.category] === "task");
  let begins = 0;
  for (let i = 0; i < count; i++) if (events.kind[i] === KIND.BEGIN) begins++;
  const slices = makeSlices(begins), ids = byThread(events.thread, facts.threads.length);
  const threads = ids.map((own, number) => {
    const built = buildThread(events, slices, own, number, isTask, gaps[number], last);
    return {...facts.threads[number], number, ids: own, gaps: gaps[number], instants: built.instants,
      instantTimes: Float64Array.from(built.instants, (i) => events.time[i]),
      lanes: lanesOf(slices, built.slices), counters: counterTracks(events, facts, number, built.counters)};
  });
  return {facts, events, count, slices, threads, messages: messagesOf(events), dependencies: dependenciesOf(events, facts, slices, isTask),
    regions: regionsOf(events, facts, first, last), isTask, ...boundsOf(first, last)};
};
