"use strict";
/* What every script of the page uses. */
const $ = (selector, root = document) => root.querySelector(selector);
const make = (tag, text, cls) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (cls) element.className = cls;
  return element;
};
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
/* The first index from `from` on whose value is not below x; values rise. */
const lowerBound = (values, x, from = 0, to = values.length) => {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] < x) from = middle + 1; else to = middle;
  }
  return from;
};

/* ---- numbers in words ---- */
const whole = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
const plural = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
const unitOf = (ns) => UNITS.findLast(([scale]) => Math.abs(ns) >= scale) || UNITS[0];
const duration = (ns) => {
  const [scale, unit] = unitOf(ns);
  return `${Number((ns / scale).toPrecision(4))} ${unit}`.replace("-", "−");
};
/* A moment to the ns, its decimals in threes. */
const moment = (ns) => {
  const [scale, unit] = unitOf(ns);
  const decimals = Math.round(Math.log10(scale));
  const [front, back = ""] = Math.abs(ns / scale).toFixed(decimals).split(".");
  const threes = back.replace(/0+$/, "").replace(/(\d{3})(?=\d)/g, "$1\u202f");
  return `${ns < 0 ? "−" : ""}${front}${threes ? "." + threes : ""} ${unit}`;
};
const bytes = (count) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const index = count > 0 ? Math.min(4, Math.floor(Math.log10(count) / 3)) : 0;
  return `${Number((count / 1000 ** index).toPrecision(4))} ${units[index]}`;
};
