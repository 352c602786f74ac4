"use strict";
/* What every script of the page uses. */
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, text, cls) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (cls) element.className = cls;
  return element;
};
const pairs = (list) => {
  const dl = make("dl");
  for (const [name, text] of list) dl.append(make("dt", name), make("dd", text));
  return dl;
};

/* ---- numbers, written as the rest of the page writes them ---- */
const number = (value) => {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (size < 1e-4 || size >= 1e15) return sign + size.toExponential(3);
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(size)));
  let [whole, rest] = size.toFixed(decimals).split(".");
  rest = (rest || "").replace(/0+$/, "");
  if (whole.length > 4) whole = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return sign + whole + (rest ? "." + rest : "");
};
const interval = (value, low, high) => {
  if (value === null) return "–";
  if (low === null || high === null) return value.toFixed(2);
  const width = Math.abs(high - low), decimals = width >= 0.02 ? 2 : width >= 0.002 ? 3 : 4;
  const fixed = (v) => v.toFixed(decimals).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");
  return `${fixed(value)} (${fixed(low)} to ${fixed(high)})`;
};
