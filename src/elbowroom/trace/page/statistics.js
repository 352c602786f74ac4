/* Sums over the chosen part of the time, or over the whole trace. */
const inRange = (from, to) => {
  const {facts, events, slices, messages, threads} = trace;
  const types = facts.types.map((type, index) => ({index, name: type.name, category: facts.categories[type.category], events: 0, begun: 0, lasted: 0, whole: 0, inside: 0, own: 0}));
  const ranks = facts.ranks.map((rank) => ({rank: rank.rank, host: rank.host, events: 0, sent: 0, sentBytes: 0, received: 0, receivedBytes: 0, lost: 0, losing: false}));
  const first = lowerBound(events.time, from);
  let last = lowerBound(events.time, to, first);
  while (last < trace.count && events.time[last] <= to) last++;
  for (let i = first; i < last; i++) {
    types[events.type[i]].events++;
    const rank = ranks[threads[events.thread[i]].rank];
    rank.events++;
    if (events.kind[i] === KIND.SEND) { rank.sent++; rank.sentBytes += Number(wide(events.second, i)); }
    else if (events.kind[i] === KIND.RECEIVE) { rank.received++; rank.receivedBytes += Number(wide(events.second, i)); }
  }
  for (let slice = 0; slice < slices.count; slice++) {
    const begin = slices.begin[slice], end = slices.end[slice];
    if (end < from || begin > to) continue;
    const type = types[slices.type[slice]], inside = Math.min(end, to) - Math.max(begin, from);
    type.inside += inside;
    type.own += inside;
    if (slices.parent[slice] !== NONE) types[slices.type[slices.parent[slice]]].own -= inside;
    if (begin < from) continue;
    type.begun++;
    if (!slices.open[slice]) { type.whole++; type.lasted += end - begin; }
  }
  for (const thread of threads) for (const gap of thread.gaps) if (gap.end >= from && gap.begin <= to) { ranks[thread.rank].lost += gap.lost; ranks[thread.rank].losing ||= gap.lost > 0; }
  let sent = 0, moved = 0, wrong = 0;
  for (let i = lowerBound(messages.sent, from); i < messages.count && messages.sent[i] <= to; i++) {
    sent++;
    moved += Number(wide(events.second, messages.send[i]));
    if (isBad(messages.flags[i])) wrong++;
  }
  return {from, to, events: last - first, types: types.filter((type) => type.events), ranks, messages: sent, bytes: moved, wrong};
};
const tableOf = (caption, heads, rows) => {
  const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  table.createCaption().textContent = caption;
  for (const [text, title] of heads) { const th = make("th", text); th.scope = "col"; if (title) th.title = title; head.append(th); }
  for (const row of rows) {
    const tr = body.insertRow();
    row.forEach((cell, index) => {
      const td = tr.insertCell();
      if (index && typeof cell === "string") td.className = "number";
      td.append(cell);
    });
  }
  return table;
};
const SORTED = 60;
const showStatistics = () => {
  const [from, to] = view.range || [trace.first, trace.last], sums = inRange(from, to), box = elements.statistics;
  const what = view.range ? `Selected ${duration(to - from)}, from ${moment(from)} to ${moment(to)}` : `Whole trace, ${duration(to - from)}`;
  const summary = `${plural(sums.events, "event")}, ${plural(sums.messages, "message")} of ${bytes(sums.bytes)}${sums.wrong ? `, ${sums.wrong} of them tachyons or suspect` : ""}`;
  const key = (type) => { const name = make("span"), dot = make("i", "", "dot"); dot.style.background = look.types[type.index]; name.append(dot, type.name); return name; };
  const types = sums.types.sort((a, b) => b.own - a.own || b.events - a.events);
  const heads = [["type"], ["events"], ["begun", "spans that begin here"], ["time", "of all spans, inside the range"], ["own time", "without nested spans"], ["mean", "of spans that begin here and end in the trace"]];
  const rows = types.map((type) => [key(type), whole(type.events), type.begun || type.inside ? whole(type.begun) : "–", type.inside ? duration(type.inside) : "–", type.inside ? duration(type.own) : "–", type.whole ? duration(type.lasted / type.whole) : "–"]);
  const ranks = sums.ranks.map((rank) => [`${rank.rank} · ${rank.host}`, whole(rank.events), whole(rank.sent), bytes(rank.sentBytes), whole(rank.received), bytes(rank.receivedBytes), rank.losing ? whole(rank.lost) : "0"]);
  const clear = make("button", "clear");
  clear.type = "button";
  clear.id = "clear-range";
  clear.addEventListener("click", () => selectRange(null));
  const title = make("h2", what), about = make("p", summary);
  about.id = "sums";
  box.replaceChildren(title, about, tableOf("by type", heads, rows.slice(0, SORTED)), tableOf("by rank", [["rank"], ["events"], ["sent"], ["bytes"], ["received"], ["bytes"], ["lost"]], ranks.slice(0, 512)));
  if (view.range) title.append(" ", clear);
  if (rows.length > SORTED) about.append(`; the ${SORTED} of ${rows.length} types with the longest time`);
};
const selectRange = (range) => {
  view.range = range && range[0] !== range[1] ? [Math.min(...range), Math.max(...range)] : null;
  showStatistics();
  redraw();
};
