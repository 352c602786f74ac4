/* The page's data as arrays: each column has its bytes of one significance together (timeline_data.py). */
const KIND = {EVENT: 0, BEGIN: 1, END: 2, COUNTER: 3, SEND: 4, RECEIVE: 5, MASK: 6, REGION: 7, LOST: 8};
const KINDS = ["event", "begin", "end", "counter", "send", "receive", "mask", "region", "lost"];
const FLAG = {TACHYON: 1, SUSPECT: 2, UNMATCHED: 4, UNSYNCED: 8, EXTRAPOLATED: 16, MOVED: 32, MISMATCHED: 64, CLIPPED: 128};
const FLAGS = [
  "tachyon: arrives before it was sent", "suspect: faster than possible", "unmatched: the other end is not in the trace",
  "unsynced: the clock has no sync point", "extrapolated: outside the sync points",
  "moved: the clock went back, so the time is that of the previous event",
  "mismatched: the ends have different sizes and belong to different messages",
  "clipped: cut at the edge of the time that is shown"];

const fromBase64 = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const plain = atob(text), data = new Uint8Array(plain.length);
  for (let i = 0; i < plain.length; i++) data[i] = plain.charCodeAt(i);
  return data;
};
const inflated = async (input) => {
  if (typeof DecompressionStream === "undefined") throw new Error("it needs a browser of 2023 or later");
  const stream = new Blob([input]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
/* The bytes of one significance: somewhere in the data, or all alike (-1 - value). */
const plane = (data, at, count) => (at < 0 ? new Uint8Array(count).fill(-1 - at) : data.subarray(at, at + count));
const numbers = (data, places, count) => {
  const values = new Uint32Array(count);
  places.forEach((at, byte) => {
    const shift = 8 * byte;
    if (at < 0) { if (at < -1) for (let i = 0; i < count; i++) values[i] |= (-1 - at) << shift; return; }
    for (let i = 0; i < count; i++) values[i] |= data[at + i] << shift;
  });
  return values;
};
const column = (data, {planes, count}) => {
  if (planes.length === 1) return plane(data, planes[0], count);
  const low = numbers(data, planes.slice(0, 4), count);
  return planes.length === 8 ? {low, high: numbers(data, planes.slice(4), count)} : low;
};
const dataOf = async (facts, text) => {
  const input = fromBase64(text);
  return facts.compressed ? inflated(input) : input;
};
const unpack = async (facts) => {
  const data = await dataOf(facts, $("#data").textContent.trim()), columns = {};
  for (const place of facts.columns) columns[place.name] = column(data, place);
  columns.error = new Float32Array(columns.error.buffer);
  const {low, high} = columns.step, time = new Float64Array(facts.events);
  let now = facts.first;
  for (let i = 0; i < time.length; i++) { now += low[i] + high[i] * 4294967296; time[i] = now; }
  delete columns.step;
  return {...columns, time};
};
/* A number of 64 bits: exact, in words where it has to be. */
const wide = ({low, high}, i) => (high[i] < 0x200000 ? high[i] * 4294967296 + low[i] : (BigInt(high[i]) << 32n) | BigInt(low[i]));
const signed = ({low, high}, i) => {
  const value = (high[i] | 0) * 4294967296 + low[i];
  return Number.isSafeInteger(value) ? value : (BigInt(high[i] | 0) << 32n) | BigInt(low[i]);
};
