// When the run stood still, or nearly so, and why.

/** Fewer requests in flight than this share of the most that there were are few. */
const FEW = 0.1;
/** Stretches that take less than this share of the run are counted, and not told one by one. */
const BRIEF = 0.01;

/**
 * The stretches in which no request was in flight, and those in which there were few, the longest first:
 * {from, to, nothing (whether none was in flight), inFlight (the mean), why}; how many were too `brief` to be told; and all
 * of them as `none` and `few`.
 * `steps` are all requests in flight, `byStage` those of each stage by its name, `data` what `collected` returns.
 */
export function stillStretches(store, data, steps, byStage, most = 12) {
  if (!steps.times.length) return { stretches: [], brief: 0, none: [], few: [], limit: 0, secondsNone: 0, secondsFew: 0 };
  const none = steps.below(0.5, 0, data.end);
  const limit = Math.max(1, Math.ceil(FEW * steps.most));
  const few = steps.below(limit, 0, data.end);
  const sum = (found) => found.reduce((total, [from, to]) => total + to - from, 0);
  const longest = [
    ...none.map(([from, to]) => ({ from, to, nothing: true })),
    ...few.filter(([from, to]) => !within(none, from, to)).map(([from, to]) => ({ from, to, nothing: false })),
  ];
  const lasting = longest.filter(({ from, to }) => to - from >= BRIEF * data.end);
  lasting.sort((a, b) => b.to - b.from - (a.to - a.from));
  const known = facts(store);
  const shown = lasting.slice(0, most).map((each) => ({
    ...each,
    inFlight: each.nothing ? 0 : steps.mean(each.from, each.to),
    why: why(each, data, known, byStage, steps),
  }));
  return { stretches: shown, brief: longest.length - lasting.length, none, few, limit, secondsNone: sum(none), secondsFew: sum(few) };
}

/** Whether a stretch is hardly more than one in which nothing was in flight, which is told of already. */
function within(none, from, to) {
  return none.some((each) => each[0] >= from && each[1] <= to && each[1] - each[0] > 0.9 * (to - from));
}

/** What the tables know that may be a reason. */
function facts(store) {
  const log = store.table("log");
  const [kinds, times] = [log.column("kind"), log.column("seconds")];
  const when = (kind) => times.filter((_, place) => kinds[place] === kind);
  const moves = store.table("moves").rows();
  const paused = [];
  for (const { kind, after, seconds } of moves) {
    if (kind !== "pause") continue;
    if (after) paused.push([seconds, Infinity]);
    else if (paused.length) paused[paused.length - 1][1] = seconds;
  }
  return {
    mode: store.about().mode,
    state: store.about().state,
    paused,
    moves,
    refused: when("budget.refused"),
    firstFlow: firstFlow(store.table("spans")),
    stopping: when("run.stopping")[0] ?? Infinity,
    stopped: when("run.stop")[0] ?? Infinity,
  };
}

/** When the first flow was opened; what came before it was the measuring of the seed. */
function firstFlow(spans) {
  const [sources, stages, sent] = ["source", "stage", "sent"].map((name) => spans.column(name));
  const place = sources.findIndex((source, at) => source === null && stages[at] !== "init");
  return place < 0 ? Infinity : sent[place];
}

function why(stretch, data, known, byStage, steps) {
  const { from, to, nothing } = stretch;
  const near = (time) => time >= from - 0.001 && time < to;
  if (known.paused.some(([begin, end]) => begin < to && end > from)) return "The run was paused.";
  const told = known.moves.findLast((move) => ["limits", "server", "endpoint"].includes(move.kind) && near(move.seconds));
  if (told) return `${{ limits: "Rate limit", server: "Server", endpoint: "Endpoint" }[told.kind]}: ${told.reason || told.subject}.`;
  const doing = nothing ? quietly(stretch, data) : few(stretch, data, known, byStage, steps);
  if (known.firstFlow >= (from + to) / 2) return `Before the first flow, while the seed was measured. ${doing}`;
  if (from >= known.stopped) return `After the run's end. ${doing}`;
  if (known.stopping <= (from + to) / 2) return `The run was ending: nothing new was begun. ${doing}`;
  if (nothing && known.refused.some(near)) return "There was no room in the budget for more work.";
  return doing;
}

/** Few requests were in flight: whose they were, and what that kept waiting. */
function few({ from, to }, data, known, byStage, steps) {
  const shares = Object.entries(byStage).map(([stage, own]) => [stage, own.mean(from, to)]);
  shares.sort((a, b) => b[1] - a[1]);
  const all = steps.mean(from, to);
  const main = shares.filter(([, mean]) => mean > 0.2 * all).map(([stage]) => stage);
  const waiting = waitingItems(data, (from + to) / 2);
  const order = (one, other) => data.stages.indexOf(one) - data.stages.indexOf(other);
  if (known.mode === "sync" && main.length === 1) return `Lockstep: everything else waited for the last requests of ${main[0]}.`;
  if (known.mode === "sync") return `Lockstep: ${listed(main.sort(order))} took turns; each waited for the last request of the one before.`;
  const said = `Only ${listed(main)} had requests`;
  return waiting ? `${said}; ${waiting}.` : `${said}.`;
}

function listed(names) {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
}

/** No request was in flight: who was at work without any, or what was waited for. */
function quietly({ from, to }, data) {
  const middle = (from + to) / 2;
  const { calls, spans } = data;
  const [queued, begun] = [calls.column("queued"), calls.column("begun")];
  let held = 0;
  for (let place = 0; place < calls.length; place++) if (queued[place] <= middle && begun[place] >= to) held++;
  if (held) return `${held === 1 ? "A request" : `${held} requests`} waited to be sent (again).`;
  const working = counted(spans, (place, taken, done) => taken != null && taken <= middle && (done ?? data.end) >= middle);
  if (working) return `Work without requests: ${working}.`;
  const waiting = waitingItems(data, middle);
  return waiting ? `${waiting[0].toUpperCase()}${waiting.slice(1)}.` : "No work was open.";
}

function waitingItems({ spans, end }, time) {
  const sent = spans.column("sent");
  const found = counted(spans, (place, taken, done) => sent[place] <= time && (taken ?? done ?? end) > time);
  return found && `items waited for ${found}`;
}

/** "evaluate 3, screen" for spans that fit, by stage; empty if there is none. */
function counted(spans, fits) {
  const [stages, taken, done] = ["stage", "taken", "done"].map((name) => spans.column(name));
  const counts = new Map();
  for (let place = 0; place < spans.length; place++) {
    if (fits(place, taken[place], done[place])) counts.set(stages[place], (counts.get(stages[place]) ?? 0) + 1);
  }
  return [...counts].map(([stage, count]) => (count > 1 ? `${stage} (${count})` : stage)).join(", ");
}
