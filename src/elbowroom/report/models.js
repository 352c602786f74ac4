"use strict";
/* The models of M.json (docs/reference/model-file.md), evaluated as models/threshold/law.py, models/flow/law.py and
   models/predict.py do: same names, same order of operations, so that the page says what `elbowroom predict`
   says. Bandwidths in MB/s, sizes in bytes; rates are in the order of STREAMS. */
const Models = (() => {
const STREAMS = ["comp_alone", "comm_alone", "comp_together", "comm_together"];
const BEST_FIRST = ["flow", "robust", "threshold"];
const SAME = 1e-9;
class Unknown extends Error {}
const isLocal = (shape, node) => node < shape.numa_per_socket;

/* ---- the threshold model (thesis, equations 6.1-6.8; `faithful` to the letter, else repaired) ---- */
const total = (p, n, cores, faithful) => {
  if (!faithful && p.n_par_max > p.n_seq_max) {
    const last = p.t_par_max2 - p.delta_r * (cores - p.n_seq_max);
    const fall = (p.t_par_max - last) / Math.max(cores - p.n_par_max, 1);
    return p.t_par_max - fall * Math.max(n - p.n_par_max, 0);
  }
  if (n <= p.n_par_max) return p.t_par_max;
  if (n <= p.n_seq_max) return p.t_par_max - p.delta_l * (n - p.n_par_max);
  return p.t_par_max2 - p.delta_r * (n - p.n_seq_max);
};
const compAlone = (p, n, cores, faithful) => {
  if (faithful) return Math.min(n * p.b_comp_seq, total(p, n, cores, true), p.t_seq_max);
  const ownLoss = Math.max(p.delta_r, 0) * Math.max(n - p.n_seq_max, 0);
  return Math.max(Math.min(n * p.b_comp_seq, p.t_seq_max - ownLoss), 0);
};
/* Data of both on one node: [computations alone, computations together, communications together]. */
const onOneNode = (p, n, cores, faithful) => {
  if (n === 0) return [0, 0, p.b_comm_seq];
  const wanted = (i) => (faithful ? i * p.b_comp_seq : compAlone(p, i, cores, false));
  const fits = (i) => wanted(i) + p.alpha * p.b_comm_seq < total(p, i, cores, faithful);
  const leftOver = (i) => Math.min(total(p, i, cores, faithful) - wanted(i), p.b_comm_seq);
  const kept = () => {
    if (n >= p.n_seq_max || p.n_seq_max - p.n_par_max <= 1) return p.alpha;
    let last = n;
    while (last > 0 && !fits(last)) last--;
    const keptThere = last > 0 ? leftOver(last) / p.b_comm_seq : 1;
    return keptThere - (keptThere - p.alpha) / (p.n_seq_max - last) * (n - last);
  };
  const alone = compAlone(p, n, cores, faithful), carried = total(p, n, cores, faithful);
  const share = fits(n) ? leftOver(n) : kept() * p.b_comm_seq;
  if (faithful) return [alone, fits(n) ? wanted(n) : carried - share, share];
  const comm = Math.min(Math.max(share, 0), p.b_comm_seq);
  return [alone, Math.min(Math.max(carried - comm, 0), alone), comm];
};
const side = (part, shape, node, what) => {
  const where = isLocal(shape, node) ? "local" : "remote";
  if (!part[where]) throw new Unknown(`the model of ${shape.name} was calibrated without ${where} data (${what} on node ${node})`);
  return part[where];
};
const thresholdStreams = (part, shape, situation, faithful) => {
  const cores = shape.cores_first_socket, {n, comp_node: compNode, comm_node: commNode} = situation;
  const comp = side(part, shape, compNode, "computations"), comm = side(part, shape, commNode, "communications");
  const [alone, compTogether, commTogether] = onOneNode(comp, n, cores, faithful);
  if (compNode === commNode) return [alone, comm.b_comm_seq, compTogether, commTogether];
  if (!faithful) return [alone, comm.b_comm_seq, alone, comm.b_comm_seq];
  if (!part.local) return null;
  return [alone, comm.b_comm_seq, alone, onOneNode({...part.local, b_comm_seq: comm.b_comm_seq}, n, cores, true)[2]];
};
const thresholdBand = (part, shape, {comp_node: compNode, comm_node: commNode}) => {
  const notes = part.bands_from ? [`interval: ${part.bands_from}`] : [];
  const where = {0: "local", [shape.numa_per_socket]: "remote"}[compNode];
  if (compNode === commNode && where && part.bands[where]) return [part.bands[where], notes];
  if (part.bands.other) return [part.bands.other, notes];
  const all = Object.values(part.bands);
  return [STREAMS.map((_, i) => Math.max(...all.map((band) => band[i]))), [...notes, "interval: sample placements only"]];
};
const threshold = (part, shape, situation) => {
  const streams = thresholdStreams(part, shape, situation, false), published = thresholdStreams(part, shape, situation, true);
  const repaired = !published || streams.some((v, i) => Math.abs(v - published[i]) > SAME * Math.abs(published[i]));
  const [band, notes] = thresholdBand(part, shape, situation);
  const intervals = streams.map((value, i) => ({value, low: Math.max(value * (1 - band[i]), 0), high: value * (1 + band[i])}));
  return [intervals, [...(repaired ? ["repaired"] : []), ...notes]];
};

/* ---- FLOW (models/flow/law.py says every step; the letters are its own) ---- */
const JITTER = [-1.711094, -1.038997, -0.633067, -0.303096, 0, 0.303096, 0.633067, 1.038997, 1.711094];
const FLOW_NAMES = [
  "core_local", "core_remote", "comm_first", "comm_second", "uplink", "link", "controller", "port", "crossing", "root",
  "floor_first", "floor_second", "weight_first", "weight_second", "cost_first", "cost_second", "remote_weight",
  "remote_cost", "dip_local", "dip_remote", "rise_local", "rise_remote", "excess_local", "excess_remote"];
const FULL = 1e-12;
/* Rates of streams {demand, floor, weight, costs: [of each resource]} in resources of `capacities` (models/flow/law.py).
   Plain loops: a move of a slider fills some hundred thousand networks. */
const fill = (streams, capacities) => {
  const used = (values, r) => { let sum = 0; for (let k = 0; k < streams.length; k++) sum += streams[k].costs[r] * values[k]; return sum; };
  const floors = streams.map((stream) => stream.floor);
  const rates = floors.slice(), active = floors.slice();
  for (let r = 0; r < capacities.length; r++) {
    const wanted = used(floors, r), kept = wanted > capacities[r] ? capacities[r] / wanted : 1;
    for (let k = 0; k < streams.length; k++) if (streams[k].costs[r] > 0) rates[k] = Math.min(rates[k], floors[k] * kept);
  }
  const grow = (weightOf) => {
    for (let round = 0; round < streams.length; round++) {
      for (let k = 0; k < streams.length; k++) {
        const {demand, weight} = streams[k];
        active[k] = demand - rates[k] <= FULL * demand ? 0 : weightOf(weight);
      }
      const free = capacities.map((capacity, r) => Math.max(capacity - used(rates, r), 0));
      for (let r = 0; r < capacities.length; r++) {
        if (free[r] > FULL * capacities[r]) continue;
        for (let k = 0; k < streams.length; k++) if (streams[k].costs[r] > 0) active[k] = 0;
      }
      let step = Infinity;
      for (let k = 0; k < streams.length; k++) if (active[k] > 0) step = Math.min(step, (streams[k].demand - rates[k]) / active[k]);
      if (step === Infinity) return;
      for (let r = 0; r < capacities.length; r++) { const load = used(active, r); if (load > 0) step = Math.min(step, free[r] / load); }
      for (let k = 0; k < streams.length; k++) rates[k] += active[k] * step;
    }
  };
  grow((weight) => (weight > 0 ? weight : 0));
  if (streams.some(({weight}) => !(weight > 0))) grow((weight) => (weight > 0 ? 0 : 1));
  return rates;
};
/* Two streams in one resource, the second with a floor and a cost: `fill` in closed form. */
const pair = (demand, weight, other, otherWeight, floor, cost, capacity) => {
  const kept = Math.min(floor, other, capacity / cost);
  const share = kept + (capacity - cost * kept) * (otherWeight / (weight + cost * otherWeight));
  const second = Math.min(other, Math.max(share, (capacity - demand) / cost));
  return [Math.min(demand, Math.max(capacity - cost * second, 0)), second];
};
/* Computing cores to which comp_node is local, remote; where messages go. */
const flowCase = (shape, {comp_node: compNode, comm_node: commNode, n, n_other: nOther}) => {
  const first = isLocal(shape, compNode), messagesFirst = isLocal(shape, commNode), same = compNode === commNode;
  return {
    local: first ? n : nOther, remote: first ? nOther : n, same, beside: first === messagesFirst && !same,
    second: !messagesFirst};
};
/* Rates [computations alone, computations together, communications together] at one value z of the jitter. */
const flowAt = (p, {local, remote, same, beside, second}, z) => {
  const g = Math.max(1 + (z < 0 ? p.dip_local : p.rise_local) * z, 0);
  const h = Math.max(1 + (z < 0 ? p.dip_remote : p.rise_remote) * z, 0);
  const [comm, part, weight, cost] = second
    ? [p.comm_second, p.floor_second, p.weight_second, p.cost_second] : [p.comm_first, p.floor_first, p.weight_first, p.cost_first];
  const floor = part * comm, portCost = cost / p.remote_cost;
  const localDemand = Math.min(local * p.core_local, p.uplink * g);
  const remoteDemand = Math.min(remote * p.core_remote, p.link * h), remoteWeight = remote * p.remote_weight;
  const reduced = (whole, excess, load, sure) => Math.max(whole - excess * Math.max(load - whole, 0), sure);
  const controller = (messages, sure) => {
    const cores = local * p.core_local + p.remote_cost * remote * p.core_remote;
    const excess = local === 0 ? p.excess_remote : p.excess_local;
    return reduced(p.controller, excess, cores + cost * messages, cost * sure) * (local === 0 ? h : g);
  };
  const port = (messages, sure) =>
    reduced(p.port, p.excess_remote, remote * p.core_remote + portCost * messages, portCost * sure) * h;
  const alone = (demand) => {
    const [a, b] = pair(localDemand, local, Math.min(demand, port(0, 0)), remoteWeight, 0, p.remote_cost, controller(0, 0));
    return a + b;
  };
  if (same && remote === 0) return [alone(0), ...pair(localDemand, local, comm, weight, floor, cost, controller(comm, floor))];
  if (same && local === 0) {
    const capacity = Math.min(port(comm, floor), controller(comm, floor) / p.remote_cost);
    return [alone(remoteDemand), ...pair(remoteDemand, remoteWeight, comm, weight, floor, portCost, capacity)];
  }
  if (same) {
    const rates = fill([
      {demand: localDemand, floor: 0, weight: local, costs: [1, 0]},
      {demand: remoteDemand, floor: 0, weight: remoteWeight, costs: [p.remote_cost, 1]},
      {demand: comm, floor, weight, costs: [cost, portCost]}], [controller(comm, floor), port(comm, floor)]);
    return [alone(remoteDemand), rates[0] + rates[1], rates[2]];
  }
  const pressing = Math.max(local * p.core_local, remote * p.core_remote);
  const message = Math.min(comm, Math.max(p.root * g - pressing, p.floor_first * comm));
  if (!(beside && remote > 0)) return [alone(remoteDemand), alone(remoteDemand), message];
  const [b, crossed] = pair(remoteDemand, remoteWeight, message, weight, floor, 1, p.crossing * h);
  return [alone(remoteDemand), alone(b), crossed];
};
const flowStreams = (p, situation) => {
  const comm = situation.second ? p.comm_second : p.comm_first;
  if (situation.local + situation.remote === 0) return [0, comm, 0, comm];
  const sums = [0, 0, 0];
  for (const z of JITTER) flowAt(p, situation, z).forEach((rate, i) => { sums[i] += rate; });
  const [alone, compTogether, commTogether] = sums.map((value) => value / JITTER.length);
  return [alone, comm, compTogether, commTogether];
};

/* 90 % intervals: variance of the draws' logarithms, and what the model cannot follow (flow_fit.bands). */
const NORMAL_90 = 1.6448536269514722;
const TINY = 1e-9;
const flow = (vectors, shape, situation, discrepancy) => {
  const answers = vectors.map((p) => flowStreams(p, flowCase(shape, situation)));
  return answers[0].map((value, i) => {
    const logs = answers.slice(1).map((streams) => Math.log(Math.max(streams[i], TINY)));
    const mean = logs.reduce((a, b) => a + b, 0) / logs.length;
    const variance = logs.reduce((a, log) => a + (log - mean) ** 2, 0) / logs.length;
    const factor = Math.exp(NORMAL_90 * Math.sqrt((logs.length ? variance : 0) + discrepancy[i] ** 2));
    return {value, low: value / factor, high: value * factor};
  });
};

/* What the model cannot follow, by who computes; older files have the same everywhere. */
const discrepancyOf = ({discrepancy, discrepancies: sides}, {local, remote}) => {
  if (!sides) return discrepancy;
  return remote > 0 ? (local > 0 ? sides.both : sides.remote) : sides.local;
};

/* ---- message size (models/message_size.py): a message of s bytes takes t0 + s/B ---- */
const bandwidthAt = (law, size, known, at) => {
  const rest = at / known - law.t0;
  if (rest < 0) throw new Unknown(`${known} MB/s of ${at} B contradict t0 = ${law.t0} µs`);
  return size / (law.t0 + rest * (size / at));
};

/* ---- what a document answers ---- */
const names = (document) => BEST_FIRST.filter((name) => document.models[name]);
const whyOneSocket = (name) => (name === "flow" ? "" : "n/a: the threshold model has computing cores of one socket only");
const whyOneSize = (document) =>
  (document.message_size ? "" : "n/a: the model was calibrated with this size only; measure other sizes too (--sizes)");
/* Whether the run measured such counts of cores, and data on such sockets. */
const isInside = ({machine: shape, calibration: known}, {n, n_other: nOther, comp_node: compNode, comm_node: commNode}) => {
  const measured = (which, node) => known.placements.some((place) => isLocal(shape, place[which]) === isLocal(shape, node));
  return (n === 0 || (known.n_low <= n && n <= known.n_high)) && nOther <= known.n_other_high && measured(0, compNode) && measured(1, commNode);
};
/* Predicts for situations of one placement: [{comp_alone: {value, low, high}, ..., flags}, ...]. */
const predict = (document, name, situations, size = document.calibration.size) => {
  const {machine: shape, calibration: known, message_size: law} = document, part = document.models[name];
  const scaled = (value) => (size === known.size ? value : bandwidthAt(law, size, value, known.size));
  const answer = name === "flow" ? flowAnswer(part, shape, scaled) : thresholdAnswer(part, shape, scaled);
  const {comp, comm} = document.node_factors ?? {};
  return situations.map((situation) => {
    const inside = isInside(document, situation) && (size === known.size || (Math.min(...law.sizes) <= size && size <= Math.max(...law.sizes)));
    const [intervals, flags] = answer(situation);
    const factors = comp ? [comp[situation.comp_node], comm[situation.comm_node]] : [1, 1];
    const times = (interval, factor) => Object.fromEntries(Object.entries(interval).map(([end, value]) => [end, value * factor]));
    return {
      ...Object.fromEntries(STREAMS.map((stream, i) => [stream, times(intervals[i], factors[i % 2])])),
      flags: [...(inside ? [] : ["extrapolated"]), ...(shape.virtual ? ["virtual"] : []), ...flags]};
  });
};
const thresholdAnswer = (part, shape, scaled) => {
  const sized = (p) => p && {...p, b_comm_seq: scaled(p.b_comm_seq)};
  const used = {...part, local: sized(part.local), remote: sized(part.remote)};
  return (situation) => {
    if (situation.n_other) throw new Unknown(whyOneSocket("threshold"));
    return threshold(used, shape, situation);
  };
};
const flowAnswer = (part, shape, scaled) => {
  const odd = [...FLOW_NAMES.filter((name) => !part.names.includes(name)), ...part.names.filter((name) => !FLOW_NAMES.includes(name))];
  if (odd.length) throw new Unknown(`fitted with other parameters of FLOW (${odd.join(", ")})`);
  const vector = (values) => {
    const p = Object.fromEntries(part.names.map((name, i) => [name, values[i]]));
    return {...p, comm_first: scaled(p.comm_first), comm_second: scaled(p.comm_second)};
  };
  const vectors = [part.values, ...part.draws].map(vector);
  return (situation) => [flow(vectors, shape, situation, discrepancyOf(part, flowCase(shape, situation))), []];
};

return {Unknown, names, whyOneSocket, whyOneSize, predict};
})();
