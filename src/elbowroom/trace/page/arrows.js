/* Messages and dependencies between rows, the chosen event, the chosen part of the time. */
const MOST_ARROWS = 3000;
const arrowHead = (context, x, y, fromX, fromY) => {
  const angle = Math.atan2(y - fromY, x - fromX);
  context.beginPath();
  context.moveTo(x, y);
  for (const turn of [2.7, -2.7]) context.lineTo(x + 7 * Math.cos(angle + turn), y + 7 * Math.sin(angle + turn));
  context.fill();
};
const arrow = (context, x, y, toX_, toY_, colour, width, alpha) => {
  context.globalAlpha = alpha;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX_, toY_);
  context.stroke();
  if (Math.hypot(toX_ - x, toY_ - y) > 9) arrowHead(context, toX_, toY_, x, y);
  context.globalAlpha = 1;
};
const isBad = (flags) => flags & (FLAG.TACHYON | FLAG.SUSPECT);
/* Where a message begins or ends: at the slice around its event, which the call made, or at its mark. */
const messageY = (event) => middleOf(trace.events.thread[event], -1);
const drawMessage = (context, message, strong) => {
  const {messages, events} = trace, flags = messages.flags[message];
  const y = messageY(messages.send[message]), toY = messageY(messages.receive[message]);
  if (Number.isNaN(y) || Number.isNaN(toY)) return false;
  const colour = flags & FLAG.TACHYON ? look.bad : flags & FLAG.SUSPECT ? look.warn : strong ? look.link : look.ink;
  arrow(context, toX(messages.sent[message]), y, toX(messages.received[message]), toY, colour, strong || isBad(flags) ? 2 : 1, strong || isBad(flags) ? 1 : 0.42);
  return !isHidden(events.type[messages.send[message]]);
};
/* Messages of which a part is in sight: beyond MOST_ARROWS every so many, said so; those that are wrong, all. */
const drawMessages = (context, top, height) => {
  const {messages, events} = trace, seen = [], wrong = [];
  let count = 0;
  const inSight = (message) => {
    const y = messageY(messages.send[message]), to = messageY(messages.receive[message]);
    return !(Math.max(y, to) < top || Math.min(y, to) > top + height);
  };
  const last = lowerBound(messages.sent, view.to + 1e-6);
  for (let i = lowerBound(messages.reach, view.from); i < messages.count && (i < last || isBad(messages.flags[i])); i++) {
    if (Math.max(messages.sent[i], messages.received[i]) < view.from || Math.min(messages.sent[i], messages.received[i]) > view.to) continue;
    if (isHidden(events.type[messages.send[i]])) continue;
    if (isBad(messages.flags[i])) wrong.push(i); else { count++; if (seen.length <= 8 * MOST_ARROWS) seen.push(i); }
  }
  // A stride over all of them, not over those that were listed first.
  const stride = Math.ceil(count / MOST_ARROWS);
  let drawn = 0;
  if (stride <= 8) for (let i = 0; i < seen.length; i += stride) { if (inSight(seen[i])) drawMessage(context, seen[i], false); drawn++; }
  else for (let i = lowerBound(messages.reach, view.from); i < last; i += stride) { if (!isHidden(events.type[messages.send[i]]) && inSight(i)) drawMessage(context, i, false); drawn++; }
  for (const i of wrong.slice(0, MOST_ARROWS)) drawMessage(context, i, false);
  const more = wrong.length ? `, ${whole(wrong.length)} tachyons or suspects` : "";
  return drawn < count ? `1 of ${stride} message arrows drawn (${whole(count)} in sight${more}); zoom in for all` : wrong.length ? `${plural(wrong.length, "tachyon or suspect message")} in sight` : "";
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
  const seen = pairs.filter(([from, to]) => slices.begin[to] >= view.from && slices.end[from] <= view.to && !isHidden(slices.type[from]));
  const stride = Math.max(1, Math.ceil(seen.length / MOST_ARROWS));
  for (let i = 0; i < seen.length; i += stride) drawDependency(context, seen[i], false);
  return stride > 1 ? `1 of ${stride} dependency arrows drawn; zoom in for all` : "";
};
const drawArrows = (context, top, height) => {
  const told = [];
  if (view.arrows.dependencies) told.push(drawDependencies(context));
  if (view.arrows.messages) told.push(drawMessages(context, top, height));
  const message = view.event === NONE ? 0 : trace.messages.of[view.event];
  if (message) drawMessage(context, message - 1, true);
  if (view.slice !== NONE) for (const place of trace.dependencies.of.get(view.slice) || []) drawDependency(context, trace.dependencies.pairs[place], true);
  return told.filter(Boolean).join(" · ");
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
  const x = Math.max(gutter() - 4, toX(slices.begin[slice])), to = Math.min(elements.tracks.clientWidth + 4, toX(slices.end[slice]));
  context.strokeRect(x - 1, middle - LANE / 2 - 0.5, Math.max(4, to - x + 1), LANE);
  whisker(context, slices.begin[slice], events.error[slices.event[slice]], middle);
  if (slices.endEvent[slice] !== NONE) whisker(context, slices.end[slice], events.error[slices.endEvent[slice]], middle);
};
