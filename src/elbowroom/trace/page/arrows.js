/* Messages and dependencies between rows, the chosen event, the chosen part of the time. */
const MOST_ARROWS = 1500, MOST_HEADS = 400;
const arrowHead = (context, x, y, fromX, fromY) => {
  const angle = Math.atan2(y - fromY, x - fromX);
  context.beginPath();
  context.moveTo(x, y);
  for (const turn of [2.7, -2.7]) context.lineTo(x + 7 * Math.cos(angle + turn), y + 7 * Math.sin(angle + turn));
  context.fill();
};
/* Within a row an arrow bends below what it would cross. */
const arrow = (context, x, y, toX_, toY_, colour, width, alpha) => {
  const bend = Math.abs(toY_ - y) < 1 ? LANE * 0.75 : 0;
  context.globalAlpha = alpha;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x, y);
  if (bend) context.bezierCurveTo(x + Math.min(14, (toX_ - x) / 3), y + 2 * bend, toX_ - Math.min(14, (toX_ - x) / 3), toY_ + 2 * bend, toX_, toY_);
  else context.lineTo(toX_, toY_);
  context.stroke();
  if (Math.hypot(toX_ - x, toY_ - y) > 9) arrowHead(context, toX_, toY_, bend ? toX_ - 8 : x, bend ? toY_ + 12 : y);
  context.globalAlpha = 1;
};
const isBad = (flags) => flags & (FLAG.TACHYON | FLAG.SUSPECT);
/* Where a message begins or ends: at the slice around its event, which the call made, or at its mark. */
const messageY = (event) => middleOf(trace.events.thread[event], -1);
const drawMessage = (context, message, strong) => {
  const {messages} = trace, flags = messages.flags[message];
  const y = messageY(messages.send[message]), toY = messageY(messages.receive[message]);
  if (Number.isNaN(y) || Number.isNaN(toY)) return;
  const colour = flags & FLAG.TACHYON ? look.bad : flags & FLAG.SUSPECT ? look.warn : strong ? look.link : look.ink;
  arrow(context, toX(messages.sent[message]), y, toX(messages.received[message]), toY, colour, 2, 1);
};
/* Messages of which a part is in sight, those that are wrong apart. */
const messagesInSight = () => {
  const {messages, events} = trace, plain = [], wrong = [];
  for (let i = lowerBound(messages.reach, view.from); i < messages.count; i++) {
    const bad = isBad(messages.flags[i]);
    if (messages.sent[i] > view.to && !bad) { if (messages.sent[i] > view.to + latestTachyon()) break; continue; }
    if (Math.max(messages.sent[i], messages.received[i]) < view.from || Math.min(messages.sent[i], messages.received[i]) > view.to) continue;
    if (!isHidden(events.type[messages.send[i]])) (bad ? wrong : plain).push(i);
  }
  return {plain, wrong};
};
/* By how much a message arrives too early, at most: so far beyond what is in sight one may have been sent. */
const latestTachyon = () => {
  if (trace.early === undefined) {
    trace.early = 0;
    for (let i = 0; i < trace.messages.count; i++) trace.early = Math.max(trace.early, trace.messages.sent[i] - trace.messages.received[i]);
  }
  return trace.early;
};
/* Below the slices, in one stroke; beyond MOST_ARROWS only every so many, with a note. Those that are wrong come later. */
const drawMessages = (context, top, height) => {
  const {plain, wrong} = view.messages = messagesInSight(), {messages} = trace;
  const stride = Math.max(1, Math.ceil(plain.length / MOST_ARROWS)), drawn = plain.length / stride, heads = [];
  context.strokeStyle = context.fillStyle = look.ink;
  context.globalAlpha = clamp(100 / drawn, 0.15, 0.45);
  context.lineWidth = 1;
  context.beginPath();
  for (let i = 0; i < plain.length; i += stride) {
    const message = plain[i], y = messageY(messages.send[message]), end = messageY(messages.receive[message]);
    if (!(Math.max(y, end) >= top && Math.min(y, end) <= top + height)) continue;
    const x = toX(messages.sent[message]), to = toX(messages.received[message]);
    context.moveTo(x, y);
    context.lineTo(to, end);
    if (drawn <= MOST_HEADS && Math.hypot(to - x, end - y) > 9) heads.push([to, end, x, y]);
  }
  context.stroke();
  for (const head of heads) arrowHead(context, ...head);
  context.globalAlpha = 1;
  const parts = wrong.length ? [`${plural(wrong.length, "tachyon or suspect message")} visible`] : [];
  if (stride > 1) parts.push(`1 of ${stride} message arrows drawn (${whole(plain.length)} in all); zoom in for more`);
  return parts.join(" · ");
};
const drawDependency = (context, [from, to], strong) => {
  const {slices} = trace, y = middleOf(slices.thread[from], depthOf(from)), toY = middleOf(slices.thread[to], depthOf(to));
  if (Number.isNaN(y) || Number.isNaN(toY)) return;
  context.setLineDash([5, 3]);
  arrow(context, toX(slices.end[from]), y, toX(slices.begin[to]), toY, strong ? look.link : look.faint, strong ? 2 : 1, strong ? 1 : 0.7);
  context.setLineDash([]);
};
const drawDependencies = (context) => {
  const {pairs} = trace.dependencies, {slices} = trace;
  const visible = pairs.filter(([from, to]) => slices.begin[to] >= view.from && slices.end[from] <= view.to && !isHidden(slices.type[from]));
  const stride = Math.max(1, Math.ceil(visible.length / MOST_ARROWS));
  for (let i = 0; i < visible.length; i += stride) drawDependency(context, visible[i], false);
  return stride > 1 ? `1 of ${stride} dependency arrows drawn; zoom in for all` : "";
};
const drawArrows = (context, top, height) => {
  const parts = [];
  view.messages = {plain: [], wrong: []};
  if (view.arrows.dependencies) parts.push(drawDependencies(context));
  if (view.arrows.messages) parts.push(drawMessages(context, top, height));
  return parts.filter(Boolean).join(" · ");
};
/* What is wrong, and what belongs to the chosen event. */
const drawStrongArrows = (context) => {
  for (const message of view.messages.wrong.slice(0, MOST_ARROWS)) drawMessage(context, message, false);
  const message = view.event === NONE ? 0 : trace.messages.of[view.event];
  if (message) drawMessage(context, message - 1, true);
  if (view.slice !== NONE) for (const place of trace.dependencies.of.get(view.slice) || []) drawDependency(context, trace.dependencies.pairs[place], true);
};

const drawRange = (context, top, height) => {
  if (!view.range) return;
  const [a, b] = view.range.map(toX);
  context.fillStyle = look.link;
  context.globalAlpha = 0.1;
  context.fillRect(a, top, b - a, height);
  context.globalAlpha = 0.8;
  for (const x of [a, b]) context.fillRect(x - 0.5, top, 1, height);
  context.globalAlpha = 1;
};
/* The chosen event: its outline, and how wrong its times may be. */
const whisker = (context, time, error, y) => {
  const a = toX(time - error), b = toX(time + error);
  if (!(error > 0) || b - a < 3) return;
  context.lineWidth = 1.5;
  context.strokeStyle = look.ink;
  context.beginPath();
  context.moveTo(a, y);
  context.lineTo(b, y);
  for (const x of [a, b]) { context.moveTo(x, y - 4); context.lineTo(x, y + 4); }
  context.stroke();
};
const drawChosen = (context) => {
  if (view.event === NONE) return;
  const {events, slices} = trace, number = events.thread[view.event], slice = view.slice;
  const middle = middleOf(number, slice === NONE ? -1 : depthOf(slice));
  if (Number.isNaN(middle)) return;
  context.strokeStyle = look.ink;
  context.lineWidth = 2;
  if (slice === NONE) {
    context.strokeRect(toX(events.time[view.event]) - 7, middle - 8, 14, 14);
    return whisker(context, events.time[view.event], events.error[view.event], middle + 9);
  }
  const x = Math.max(gutter - 4, toX(slices.begin[slice])), to = Math.min(boxWidth + 4, toX(slices.end[slice]));
  context.strokeRect(x - 1, middle - LANE / 2 - 0.5, Math.max(4, to - x + 1), LANE);
  whisker(context, slices.begin[slice], events.error[slices.event[slice]], middle);
  if (slices.endEvent[slice] !== NONE) whisker(context, slices.end[slice], events.error[slices.endEvent[slice]], middle);
};
