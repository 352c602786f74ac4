/* Decompresses zlib's format (RFC 1950, 1951) where the browser does not. */
const inflate = (input) => {
  const BASES = (first, extra) => { const list = []; let value = first; for (const bits of extra) { list.push(value); value += 1 << bits; } return list; };
  const LENGTH_EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
  const LENGTHS = BASES(3, LENGTH_EXTRA);
  LENGTHS[28] = 258;
  const DISTANCE_EXTRA = Array.from({length: 30}, (_, i) => Math.max(0, (i >> 1) - 1));
  const DISTANCES = BASES(1, DISTANCE_EXTRA);
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  let at = 2, held = 0, count = 0, output = new Uint8Array(input.length * 4 + 64), size = 0;
  const bits = (wanted) => {
    while (count < wanted) { held |= input[at++] << count; count += 8; }
    const value = held & ((1 << wanted) - 1);
    held >>>= wanted;
    count -= wanted;
    return value;
  };
  const room = (more) => {
    if (size + more <= output.length) return;
    const larger = new Uint8Array(Math.max(output.length * 2, size + more));
    larger.set(output);
    output = larger;
  };
  /* Canonical codes: how many there are of each length, and the symbols in their order. */
  const codes = (lengths) => {
    const counts = new Uint16Array(16), places = new Uint16Array(16), symbols = new Uint16Array(lengths.length);
    for (const length of lengths) counts[length]++;
    counts[0] = 0;
    for (let i = 1; i < 16; i++) places[i] = places[i - 1] + counts[i - 1];
    lengths.forEach((length, symbol) => { if (length) symbols[places[length]++] = symbol; });
    return {counts, symbols};
  };
  const decode = ({counts, symbols}) => {
    let code = 0, first = 0, index = 0;
    for (let length = 1; length < 16; length++) {
      code |= bits(1);
      if (code - counts[length] < first) return symbols[index + code - first];
      index += counts[length];
      first = (first + counts[length]) << 1;
      code <<= 1;
    }
    throw new Error("the data of this page is damaged");
  };
  const dynamic = () => {
    const literals = bits(5) + 257, distances = bits(5) + 1, lengths = new Array(19).fill(0), used = bits(4) + 4;
    for (let i = 0; i < used; i++) lengths[ORDER[i]] = bits(3);
    const table = codes(lengths), all = [];
    while (all.length < literals + distances) {
      const symbol = decode(table);
      if (symbol < 16) all.push(symbol);
      else {
        const value = symbol === 16 ? all[all.length - 1] : 0;
        let times = symbol === 16 ? 3 + bits(2) : symbol === 17 ? 3 + bits(3) : 11 + bits(7);
        while (times--) all.push(value);
      }
    }
    return [codes(all.slice(0, literals)), codes(all.slice(literals))];
  };
  const fixed = () => [
    codes(Array.from({length: 288}, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), codes(new Array(30).fill(5))];
  const compressed = ([literals, distances]) => {
    for (;;) {
      const symbol = decode(literals);
      if (symbol === 256) return;
      if (symbol < 256) { room(1); output[size++] = symbol; continue; }
      const length = LENGTHS[symbol - 257] + bits(LENGTH_EXTRA[symbol - 257]);
      const code = decode(distances), back = DISTANCES[code] + bits(DISTANCE_EXTRA[code]);
      room(length);
      for (let i = 0; i < length; i++, size++) output[size] = output[size - back];
    }
  };
  let last = false;
  while (!last) {
    last = bits(1) === 1;
    const kind = bits(2);
    if (kind === 0) {
      held = count = 0;
      const length = input[at] | (input[at + 1] << 8);
      room(length);
      output.set(input.subarray(at + 4, at + 4 + length), size);
      size += length;
      at += 4 + length;
    } else if (kind === 3) throw new Error("the data of this page is damaged");
    else compressed(kind === 1 ? fixed() : dynamic());
  }
  return output.subarray(0, size);
};
