// The rules of the package's model, for what this page asks: stages on one resource add, stages on different
// resources overlap, and the slowest resource sets the step. All times are seconds, all sizes bytes.
// TABLES comes from the package. A test compares `solve` with the package over thousands of settings.

// How many times one worker's rate so many workers reach on so many cores.
function speedup(workers, cores, { crowding, secondThread }) {
  const surplus = Math.min(workers - Math.min(workers, cores), cores);
  const busy = Math.min(workers, cores) + secondThread * surplus;
  return busy / (1 + (crowding * (busy - 1)) / cores);
}

// What reading a sample takes where memory does not serve it.
function readTime(size, { bandwidth, latency, inFlight, rate }) {
  const transfer = size / bandwidth;
  return Math.max(transfer, (latency + transfer) / inFlight, rate ? 1 / rate : 0);
}

// The times of a step, which resource binds, the share in which the GPU is busy, and the dollars of an hour.
function solve(scenario, setting) {
  const { workers, cores, memory, drive, decode, batch } = setting;
  const decoder = scenario.decoders[decode];
  const cached = scenario.cached[TABLES.values.memory.indexOf(memory)];
  const work = batch * scenario.sample;
  const model = Math.max(work, scenario.launch);
  const times = {
    accelerator: model,
    CPU: (batch * decoder.cpu) / speedup(workers, cores, TABLES.scaling),
    storage: batch * (1 - cached) * readTime(scenario.size, TABLES.drives[drive]),
    link: (batch * decoder.sent) / scenario.link,
    decoder: batch * decoder.decoder,
  };
  const step = Math.max(times.accelerator, times.CPU, times.storage, times.link, times.decoder);
  // Of equals the one that is named first binds: a tie starves nobody.
  let bottleneck;
  for (const name in times) if (!bottleneck && times[name] >= step * (1 - 1e-12)) bottleneck = name;
  // While the host launches kernels, the GPU has nothing to do.
  const launching = model - work;
  const held = scenario.held;
  const needed = held ? held.fixed + held.per_sample * batch : 0;
  return {
    times, step, bottleneck, launching, needed,
    busy: work / step,
    feasible: !held || needed <= held.capacity,
    throughput: batch / step,
    dollars: scenario.price + cores * TABLES.prices.core + memory * TABLES.prices.memory + TABLES.drives[drive].price,
  };
}
