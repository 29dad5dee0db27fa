// Figures that can be touched: values under the pointer or the arrow keys, and a mark for the person who is described.
(() => {
  const plots = new Map();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const text = (value) => {
    const short = Math.abs(value) >= 1e4 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
    return short.replace(/-/g, "\u2212");
  };
  const nearest = (xs, x) => xs.reduce((best, each, k) => (Math.abs(each - x) < Math.abs(xs[best] - x) ? k : best), 0);

  // A curve's height between two of its points.
  function between(xs, ys, x) {
    if (x <= xs[0]) return ys[0];
    for (let k = 1; k < xs.length; k++) {
      if (x <= xs[k]) return ys[k - 1] + ((ys[k] - ys[k - 1]) * (x - xs[k - 1])) / (xs[k] - xs[k - 1]);
    }
    return ys[ys.length - 1];
  }

  function words(facts, k) {
    const at = facts.levels ? facts.levels[k] : text(facts.x[k]);
    const parts = facts.series.map((each) => {
      const band = each.low ? ` (${text(each.low[k])} to ${text(each.high[k])})` : "";
      return `${facts.series.length > 1 ? `${each.name} ` : ""}${facts.before || ""}${text(each.y[k])}${band}`;
    });
    return `${facts.x_name || facts.x_label} ${at}: ${parts.join(", ")}`;
  }

  function draw(u, facts, frame) {
    const ctx = u.ctx;
    const x = (value) => u.valToPos(value, "x", true);
    const y = (value) => u.valToPos(value, "y", true);
    const ratio = window.devicePixelRatio || 1;
    ctx.save();
    const across = (value, name) => {
      if (value < u.scales.y.min || value > u.scales.y.max) return;
      ctx.beginPath();
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      ctx.lineWidth = 1.4 * ratio;
      ctx.strokeStyle = colour(name);
      ctx.moveTo(u.bbox.left, y(value));
      ctx.lineTo(u.bbox.left + u.bbox.width, y(value));
      ctx.stroke();
    };
    across(0, "line");
    if (facts.floor !== undefined) across(facts.floor, "orange");
    ctx.setLineDash([]);
    if (facts.levels) {
      facts.series[0].y.forEach((value, k) => {
        ctx.beginPath();
        ctx.lineWidth = 3 * ratio;
        ctx.strokeStyle = colour("blue");
        ctx.moveTo(x(k), y(facts.series[0].low[k]));
        ctx.lineTo(x(k), y(facts.series[0].high[k]));
        ctx.stroke();
        ctx.beginPath();
        ctx.arc(x(k), y(value), 5 * ratio, 0, 2 * Math.PI);
        ctx.fillStyle = colour("card");
        ctx.fill();
        ctx.stroke();
      });
    }
    if (frame.marked !== undefined) {
      const height = between(facts.x, facts.series[0].y, frame.marked);
      ctx.beginPath();
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.lineWidth = 1.4 * ratio;
      ctx.strokeStyle = colour("ink");
      ctx.moveTo(x(frame.marked), u.bbox.top);
      ctx.lineTo(x(frame.marked), u.bbox.top + u.bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.setLineDash([]);
      ctx.arc(x(frame.marked), y(height), 6 * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = colour("orange");
      ctx.fill();
      ctx.lineWidth = 2 * ratio;
      ctx.strokeStyle = colour("ink");
      ctx.stroke();
    }
    ctx.restore();
  }

  function say(frame, facts, k) {
    if (k === null || k === undefined) return;
    frame.at = k;
    const found = words(facts, k);
    frame.element.setAttribute("aria-valuenow", String(k));
    frame.element.setAttribute("aria-valuetext", found);
    if (frame.readout) frame.readout.textContent = found;
  }

  function point(frame, facts, k) {
    const u = frame.plot;
    u.setCursor({ left: u.valToPos(facts.x[k], "x"), top: u.valToPos(facts.series[0].y[k], "y") });
    say(frame, facts, k);
  }

  function range(facts, frame) {
    const together = frame.element.closest("[data-group]");
    const one = together && together.querySelector("[data-common]");
    return one && one.checked ? JSON.parse(together.dataset.ends) : facts.ends;
  }

  function make(element) {
    const facts = JSON.parse(element.dataset.plot);
    const frame = plots.get(element) || { element, at: 0 };
    if (frame.plot) frame.plot.destroy();
    const host = element.querySelector("[data-canvas]");
    frame.facts = facts;
    frame.readout = element.parentElement.querySelector("[data-readout]");
    if (facts.marked !== undefined && frame.marked === undefined) {
      frame.marked = facts.marked;
      frame.at = nearest(facts.x, facts.marked);
    }
    const ink = colour("muted");
    const grid = { stroke: colour("faint"), width: 1 };
    const data = [facts.x];
    const series = [{}];
    const bands = [];
    facts.series.forEach((each) => {
      const own = colour(each.colour || "blue");
      const hidden = facts.levels ? { paths: () => null, points: { show: false } } : { points: { show: false } };
      series.push({ stroke: own, width: 2.4, ...hidden });
      data.push(each.y);
      if (each.low) {
        series.push({ stroke: "transparent", width: 0, points: { show: false }, ...hidden });
        series.push({ stroke: "transparent", width: 0, points: { show: false }, ...hidden });
        data.push(each.high, each.low);
        if (!facts.levels) bands.push({ series: [data.length - 2, data.length - 1], fill: `${own}2b` });
      }
    });
    const k = facts.levels ? facts.levels.length : 0;
    const font = '13px system-ui, sans-serif';
    const xAxis = { stroke: ink, font, grid: { show: false }, ticks: { show: false }, size: 32, space: 60 };
    if (facts.levels) {
      Object.assign(xAxis, { splits: () => facts.x, values: () => facts.levels, space: 1 });
    } else if (facts.splits) {
      Object.assign(xAxis, { splits: () => facts.splits, values: (_, found) => found.map(text), filter: (_, found) => found });
    } else {
      xAxis.values = (_, found) => found.map(text);
    }
    const options = {
      width: Math.max(host.clientWidth, 160),
      height: facts.height || 190,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !facts.levels && facts.series.length > 0, size: 8 } },
      scales: {
        x: {
          time: false,
          distr: facts.log ? 3 : 1,
          range: facts.levels ? () => [-0.5, k - 0.5] : () => [facts.x[0], facts.x[facts.x.length - 1]],
        },
        y: { range: () => range(facts, frame) },
      },
      axes: [xAxis, { stroke: ink, font, grid, ticks: { show: false }, size: 52, values: (_, found) => found.map(text) }],
      series,
      bands,
      hooks: { draw: [(u) => draw(u, facts, frame)], setCursor: [(u) => say(frame, facts, u.cursor.idx)] },
    };
    frame.plot = new uPlot(options, data, host);
    // Marks of the cursor on the two edges of a band would be two values too many.
    host.querySelectorAll(".u-cursor-pt").forEach((each, place) => { if (place % 3) each.hidden = true; });
    plots.set(element, frame);
    if (!frame.bound) bind(frame);
  }

  function choose(frame, k) {
    const field = document.getElementById(frame.facts.sets);
    field.value = Number(frame.facts.x[k].toPrecision(2));
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function bind(frame) {
    frame.bound = true;
    const element = frame.element;
    element.addEventListener("keydown", (event) => {
      const last = frame.facts.x.length - 1;
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      let to = step === undefined ? undefined : frame.at + step;
      if (event.key === "Home") to = 0;
      if (event.key === "End") to = last;
      if (event.key === "Enter" && frame.facts.sets) choose(frame, frame.at);
      if (to === undefined) return;
      event.preventDefault();
      point(frame, frame.facts, Math.min(Math.max(to, 0), last));
    });
    element.addEventListener("focus", () => point(frame, frame.facts, frame.at));
    element.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") return;
      const over = frame.plot.over.getBoundingClientRect();
      point(frame, frame.facts, nearest(frame.facts.x, frame.plot.posToVal(event.clientX - over.left, "x")));
    });
    if (frame.facts.sets) element.addEventListener("click", () => choose(frame, frame.at));
    new ResizeObserver(() => {
      const host = element.querySelector("[data-canvas]");
      if (host.clientWidth > 0 && Math.abs(host.clientWidth - frame.plot.width) > 1) {
        frame.plot.setSize({ width: host.clientWidth, height: frame.facts.height || 190 });
      }
    }).observe(element);
  }

  // The person whom a form describes, marked on the curve of each covariate.
  function markPerson(form) {
    for (const frame of plots.values()) {
      if (frame.facts.field === undefined) continue;
      const field = form.elements.namedItem(frame.facts.field);
      const value = field ? parseFloat(field.value) : NaN;
      const [first, last] = [frame.facts.x[0], frame.facts.x[frame.facts.x.length - 1]];
      frame.marked = Number.isFinite(value) ? Math.min(Math.max(value, first), last) : undefined;
      if (frame.marked !== undefined) say(frame, frame.facts, nearest(frame.facts.x, frame.marked));
      frame.plot.redraw(false);
    }
  }

  function all(root) {
    for (const element of root.querySelectorAll("[data-plot]")) make(element);
    const form = document.querySelector("form[data-person]");
    if (form) markPerson(form);
  }

  document.addEventListener("DOMContentLoaded", () => all(document));
  document.addEventListener("htmx:afterSettle", (event) => {
    for (const element of plots.keys()) if (!element.isConnected) plots.delete(element);
    for (const element of event.target.querySelectorAll("[data-plot]")) if (!plots.has(element)) make(element);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-person]");
    if (form) markPerson(form);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-common]")) for (const frame of plots.values()) frame.plot.redraw(true, true);
  });
  dark.addEventListener("change", () => { for (const element of [...plots.keys()]) make(element); });
})();
